#pragma once
/// Runs a planned call on the emulator: the very launches that a GPU would get, on host memory.
#include <functional>
#include <string>
#include <vector>

#include "arena/emulation/emulation.hpp"
#include "strategies/host/emulated_call.hpp"

namespace thresher::arena {

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
