#pragma once
/// Kernels of contestants in the emulator (docs/design/emulator.md): what the gate `race-free` and `thresher emulate`
/// run.
///
/// To add an operation, write two classes in the operation's folder. An EmulatedKernel is one kernel with its knobs and
/// its launches on a small problem. An EmulatedOperation finds the kernel that a contestant would launch;
/// Operation::emulated returns it. planned_run.hpp runs any planned call; its kernels need not be compiled into the
/// library. The gate and the command do the rest.
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
  /// Runs all launches of one call, in order, on uninitialized outputs; stops after a launch with a finding.
  [[nodiscard]] virtual emulator::Report run(const emulator::Options& options) = 0;
  /// The bytes that the last run wrote; they are equal on every schedule.
  [[nodiscard]] virtual std::span<const std::uint8_t> output() const = 0;
  /// Why that output violates the operation's float64 definition; empty when it holds.
  [[nodiscard]] virtual std::string wrong() const = 0;
};

/// One kernel with all its knobs.
class EmulatedKernel {
 public:
  virtual ~EmulatedKernel() = default;
  /// A title for people: "dual_gemm pingpong bf16 to bf16, 64 tokens x 32 outputs x 64 of k, 3 stages".
  [[nodiscard]] virtual std::string title() const = 0;
  /// Identifies the program: two kernels with one key are the same code.
  [[nodiscard]] virtual std::string key() const = 0;
  /// The arguments with which `thresher emulate` runs this kernel on `problem` again, without the schedule.
  [[nodiscard]] virtual std::string arguments(const Problem& problem) const = 0;
  /// Small problems around its own tile: one larger than a tile and the pipeline in every dimension, one far smaller
  /// than a tile.
  [[nodiscard]] virtual std::vector<Problem> edges() const = 0;
  /// Throws Error(invalid_argument) for a problem that the kernel does not support.
  virtual void check(const Problem& problem) const = 0;
  /// Throws as `check` does, and Error(unsupported) when the kernel is neither compiled in nor can be compiled here.
  [[nodiscard]] virtual std::unique_ptr<EmulatedRun> on(const Problem& problem) const = 0;
};

/// The kernel of a contestant, or the reason why there is none to emulate.
struct Emulation {
  std::shared_ptr<const EmulatedKernel> kernel;  ///< null: see why_none
  std::string why_none;                          ///< a clause: "its products are a library's kernels (cuBLASLt)"
};

class EmulatedOperation {
 public:
  virtual ~EmulatedOperation() = default;
  /// The strategies that have kernels of their own.
  [[nodiscard]] virtual std::vector<std::string> strategies() const = 0;
  /// The kernel that a plan launches for `problem` on `device`. Throws Error for knobs that cannot exist.
  [[nodiscard]] virtual Emulation planned(const Problem& problem, const PlanRequest& request,
                                          const DeviceSpec& device) const = 0;
  /// Compiled-in knob sets that together set every knob, each on `card`, without those that do not support it. Null:
  /// each on a card that it supports.
  [[nodiscard]] virtual std::vector<std::shared_ptr<const EmulatedKernel>> samples(const std::string& strategy,
                                                                                   const DeviceSpec* card) const = 0;
};

}  // namespace thresher::arena
