#pragma once
/// The common base of user kernels, for every device.
#include <memory>
#include <string>
#include <vector>

#include "arena/contestants/contestant.hpp"
#include "arena/pitches/kernel.hpp"
#include "arena/user_kernels/process/kernel_process.hpp"

namespace thresher::arena::user_kernels {

class BaseContestant : public Contestant {
 public:
  BaseContestant(ContestantSpec spec, Kernel kernel) : Contestant(std::move(spec)), kernel_(std::move(kernel)) {}

  [[nodiscard]] std::string unsupported_reason(const Problem& problem) const override;
  [[nodiscard]] Answer feasible(const Problem& problem, Memory& memory) const override;
  [[nodiscard]] bool packs_weights() const override { return false; }

 protected:
  [[nodiscard]] const Kernel& kernel() const { return kernel_; }
  [[nodiscard]] double call_limit_s() const { return kernel_.time_limit_s.value_or(ProcessOptions{}.call_limit_s); }
  /// The same for a process of the contestant, which keeps to its match's time limit.
  [[nodiscard]] ProcessOptions timed(ProcessOptions options) const {
    options.match_time = match_time();
    options.is_contestants = true;
    return options;
  }

 private:
  Kernel kernel_;
};

/// Each is defined in a file of its own.
[[nodiscard]] std::unique_ptr<Contestant> make_cuda_contestant(const ContestantSpec& spec, const Kernel& kernel,
                                                               const Device& device,
                                                               const std::vector<std::string>& server);
[[nodiscard]] std::unique_ptr<Contestant> make_host_contestant(const ContestantSpec& spec, const Kernel& kernel,
                                                               const Device& device,
                                                               const std::vector<std::string>& server);
[[nodiscard]] std::unique_ptr<Contestant> make_python_contestant(const ContestantSpec& spec, const Kernel& kernel,
                                                                 const Device& device);
/// `device` is a GPU.
[[nodiscard]] std::unique_ptr<Contestant> make_python_cuda_contestant(const ContestantSpec& spec, const Kernel& kernel,
                                                                      const Device& device);

}  // namespace thresher::arena::user_kernels
