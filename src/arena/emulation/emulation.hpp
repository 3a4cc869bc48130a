#pragma once
/// Kernels of contestants in the emulator (docs/emulator.md): what the gate `race-free` and `thresher emulate` run.
///
/// To add an operation: write an EmulatedKernel (one kernel with its knobs; what it launches on a small problem) and an
/// EmulatedOperation that finds the kernel a contestant would launch, in the operation's folder, and give it out in
/// Operation::emulated. planned_run.hpp runs any planned call, whose kernels need not be compiled into the library. The
/// gate and the command do the rest.
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "arena/operation/operation.hpp"
#include "core/device_spec.hpp"
#include "machine/emulator/engine/launch.hpp"

namespace thresher::arena {

/// A kernel with operands and outputs for one small problem.
class EmulatedRun {
 public:
  virtual ~EmulatedRun() = default;
  /// Everything that one call launches, in order, on outputs that hold nothing; ends after a launch that found
  /// something.
  [[nodiscard]] virtual emulator::Report run(const emulator::Options& options) = 0;
  /// What the last run wrote: the same bytes on every schedule.
  [[nodiscard]] virtual std::span<const std::uint8_t> output() const = 0;
  /// What of that is not what the operation's float64 definition says; empty when all of it is.
  [[nodiscard]] virtual std::string wrong() const = 0;
};

/// One kernel with all its knobs.
class EmulatedKernel {
 public:
  virtual ~EmulatedKernel() = default;
  /// For people: "dual_gemm pingpong bf16 to bf16, 64 tokens x 32 outputs x 64 of k, 3 stages".
  [[nodiscard]] virtual std::string title() const = 0;
  /// Tells programs apart: two kernels with one key are the same code.
  [[nodiscard]] virtual std::string key() const = 0;
  /// With what `thresher emulate` runs this kernel on `problem` again; the schedule is not among it.
  [[nodiscard]] virtual std::string arguments(const Problem& problem) const = 0;
  /// Small problems around its own tile: one beyond a tile and beyond the ring in every dimension, and far less than
  /// one tile.
  [[nodiscard]] virtual std::vector<Problem> edges() const = 0;
  /// Throws Error(invalid_argument) for a problem that the kernel does not take, and makes nothing for it.
  virtual void check(const Problem& problem) const = 0;
  /// Throws as `check` does, and Error(unsupported) when the kernel's code is neither compiled in nor can be compiled
  /// here.
  [[nodiscard]] virtual std::unique_ptr<EmulatedRun> on(const Problem& problem) const = 0;
};

/// The kernel of a contestant, or why there is none to emulate.
struct Emulation {
  std::shared_ptr<const EmulatedKernel> kernel;  ///< null: see why_none
  std::string why_none;                          ///< a clause: "its products are a library's kernels (cuBLASLt)"
};

class EmulatedOperation {
 public:
  virtual ~EmulatedOperation() = default;
  /// Those that have kernels of their own.
  [[nodiscard]] virtual std::vector<std::string> strategies() const = 0;
  /// The kernel that a plan launches for `problem` on `device`. Throws Error for knobs that cannot exist.
  [[nodiscard]] virtual Emulation planned(const Problem& problem, const PlanRequest& request,
                                          const DeviceSpec& device) const = 0;
  /// Compiled-in knob sets that between them set every knob, as they are on `card`, and none that is not made for it;
  /// null: each on a card that it is made for.
  [[nodiscard]] virtual std::vector<std::shared_ptr<const EmulatedKernel>> samples(const std::string& strategy,
                                                                                   const DeviceSpec* card) const = 0;
};

}  // namespace thresher::arena
