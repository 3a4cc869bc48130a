#pragma once
/// What kernels from outside have in common, whatever they run on.
#include <memory>
#include <string>
#include <vector>

#include "arena/contestants/contestant.hpp"
#include "arena/pitches/kernel.hpp"
#include "thresher/own_kernel.h"

namespace thresher::arena::user_kernels {

class BaseContestant : public Contestant {
 public:
  BaseContestant(ContestantSpec spec, Kernel kernel) : Contestant(std::move(spec)), kernel_(std::move(kernel)) {}

  [[nodiscard]] std::string format_obstacle(const Problem& problem) const override;
  [[nodiscard]] Answer feasible(const Problem& problem, Memory& memory) const override;

 protected:
  [[nodiscard]] const Kernel& kernel() const { return kernel_; }

 private:
  Kernel kernel_;
};

/// Input sets as the kernel is given them, and the workspace that they share.
class Calls {
 public:
  Calls(const Problem& problem, Memory& memory, const std::vector<DeviceSet>& sets, std::size_t workspace_bytes);
  [[nodiscard]] const thresher_own_dual_gemm& operator[](std::size_t set) const { return calls_[set]; }
  [[nodiscard]] std::size_t size() const { return calls_.size(); }
  [[nodiscard]] std::vector<std::string> guard_damage() const;

 private:
  std::vector<thresher_own_dual_gemm> calls_;
  std::unique_ptr<GuardedBuffer> workspace_;
};

/// What a call writes, from the first byte to the last.
[[nodiscard]] std::size_t output_bytes(const thresher_own_dual_gemm& call);

/// Each in its file.
[[nodiscard]] std::unique_ptr<Contestant> make_cuda_contestant(const ContestantSpec& spec, const Kernel& kernel,
                                                               const Device& device,
                                                               const std::vector<std::string>& server);
[[nodiscard]] std::unique_ptr<Contestant> make_host_contestant(const ContestantSpec& spec, const Kernel& kernel,
                                                               const Device& device,
                                                               const std::vector<std::string>& server);

}  // namespace thresher::arena::user_kernels
