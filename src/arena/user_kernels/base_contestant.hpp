#pragma once
/// What kernels from outside have in common, whatever they run on.
#include <functional>
#include <string>
#include <vector>

#include "arena/contestants/contestant.hpp"
#include "arena/pitches/kernel.hpp"
#include "thresher/own_kernel.h"

namespace thresher::arena::user_kernels {

class BaseContestant : public Contestant {
 public:
  BaseContestant(ContestantSpec spec, Kernel kernel, std::function<void()> alive);

  [[nodiscard]] std::string format_obstacle(const Problem& problem) const override;
  [[nodiscard]] Answer feasible(const Problem& problem, Memory& memory) const override;

 protected:
  [[nodiscard]] const Kernel& kernel() const { return kernel_; }
  [[nodiscard]] const std::function<void()>& alive() const { return alive_; }

 private:
  Kernel kernel_;
  std::function<void()> alive_;
};

/// Input sets as the kernel is given them, and the workspace that they share.
class Calls {
 public:
  Calls(const Problem& problem, Memory& memory, const std::vector<DeviceSet>& sets, std::size_t workspace_bytes);
  [[nodiscard]] const thresher_own_dual_gemm& operator[](std::size_t set) const { return calls_[set]; }
  [[nodiscard]] std::vector<std::string> guard_damage() const;

 private:
  std::vector<thresher_own_dual_gemm> calls_;
  std::unique_ptr<GuardedBuffer> workspace_;
};

/// Each in its file.
[[nodiscard]] std::unique_ptr<Contestant> make_cuda_contestant(const ContestantSpec& spec, const Kernel& kernel,
                                                               const Device& device, std::function<void()> alive);
[[nodiscard]] std::unique_ptr<Contestant> make_host_contestant(const ContestantSpec& spec, const Kernel& kernel,
                                                               const Device& device, std::function<void()> alive);

}  // namespace thresher::arena::user_kernels
