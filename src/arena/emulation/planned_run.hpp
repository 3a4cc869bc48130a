#pragma once
/// Runs a planned call on the emulator: the very launches that a GPU would get, on host memory.
#include <functional>
#include <string>
#include <vector>

#include "arena/emulation/emulation.hpp"
#include "strategies/host/emulated_call.hpp"

namespace thresher::arena {

/// Whether nothing of a call is a library's or the host's.
[[nodiscard]] bool only_launches(const strategies::PlannedCall& call);
inline constexpr const char* library_kernels = "its products are a library's kernels (cuBLASLt), not Thresher's";

/// The expressions of its kernels, each behind a blank.
[[nodiscard]] std::string kernel_expressions(const strategies::PlannedCall& call);

/// Every code of a format with scales, so that no conversion is left out.
[[nodiscard]] inline Distribution emulated_distribution(Format weights) {
  return bits(weights) < 16 ? Distribution::full_range : Distribution::normal;
}

/// `tensors` under these names, in their order.
template <class Names, class Tensors>
[[nodiscard]] std::vector<strategies::NamedTensor> named_tensors(const Names& names, const Tensors& tensors) {
  std::vector<strategies::NamedTensor> named;
  for (std::size_t i = 0; i < std::size(tensors); ++i) {
    named.push_back({names[i], tensors[i]});
  }
  return named;
}

class PlannedRun final : public EmulatedRun {
 public:
  /// Judges the outputs in memory, for the operation.
  using JudgeOutputs = std::function<Finding()>;

  /// `tensors` are in the operation's order; `judge` keeps their memory. Throws Error(unsupported) naming the step that
  /// cannot be emulated, and where a kernel is neither compiled in nor can be compiled here.
  PlannedRun(strategies::PlannedCall call, std::vector<strategies::NamedTensor> tensors, JudgeOutputs judge);

  /// Packs the plan's weights, then runs the call.
  [[nodiscard]] emulator::Report run(const emulator::Options& options) override;
  [[nodiscard]] std::span<const std::uint8_t> output() const override { return call_.output(); }
  [[nodiscard]] std::string wrong() const override;

 private:
  JudgeOutputs judge_;
  strategies::EmulatedCall call_;
};

}  // namespace thresher::arena
