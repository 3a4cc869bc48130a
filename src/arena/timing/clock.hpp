#pragma once
/// The arena's clock: times a batch of calls, and records the machine's state meanwhile. All code that judges times
/// takes its clock as a parameter, so tests use clocks that drift, throttle, jump and lie.
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "arena/timing/runner.hpp"

namespace thresher::arena {

/// The machine's state at one moment; empty where the machine does not report it.
struct Telemetry {
  std::optional<double> clock_mhz;
  std::optional<double> power_w;
  std::optional<double> temperature_c;
  /// Why the clock is throttled, in the vendor's words; empty when it is not, or when unknown.
  std::vector<std::string> throttle_reasons;
};

/// Calls that cycle through `num_sets` input sets, beginning with the one at `first_set`.
struct Batch {
  std::size_t calls = 1;
  std::size_t first_set = 0;
  std::size_t num_sets = 1;

  [[nodiscard]] std::size_t set_of(std::size_t call) const { return (first_set + call) % num_sets; }
};

/// One batch, measured twice.
struct Reading {
  double us_per_call = 0;        ///< by the clock of the device
  double watch_us_per_call = 0;  ///< by the host's own watch around launch and completion; never less than the truth
  /// The share of the time that threads waited, in total, for processors that others used; empty where unknown.
  std::optional<double> waited_share{};
};

class Clock {
 public:
  virtual ~Clock() = default;
  /// "wall clock", "CUDA events around a graph", …
  [[nodiscard]] virtual std::string_view name() const = 0;
  /// Runs the batch to completion, back to back, and returns its time.
  [[nodiscard]] virtual Reading measure(Runner& runner, const Batch& batch) = 0;
  /// Lets the host wait and the machine idle.
  virtual void rest(double seconds) = 0;
  /// Seconds since some moment, never decreasing: the unit of budgets.
  [[nodiscard]] virtual double now_s() = 0;
  [[nodiscard]] virtual Telemetry telemetry() = 0;
  /// Times of shorter batches are not reliable.
  [[nodiscard]] virtual double shortest_batch_us() const = 0;
  /// The state that this system does not report, in one sentence; empty when it reports all.
  [[nodiscard]] virtual std::string unseen() const { return {}; }
};

}  // namespace thresher::arena
