#pragma once
/// The arena's clock: how long a batch of calls takes, and what the machine was doing meanwhile. Everything that judges
/// times takes its clock as a parameter, so the judging is tested with clocks that drift, throttle, jump and lie.
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "arena/timing/runner.hpp"

namespace thresher::arena {

/// What is known of the machine's state at one moment; empty where the machine does not tell.
struct Telemetry {
  std::optional<double> clock_mhz;
  std::optional<double> power_w;
  std::optional<double> temperature_c;
  /// Why the clock is held back, in the vendor's words; empty when it is not, or when nobody tells.
  std::vector<std::string> throttle_reasons;
};

/// Calls that use `num_sets` input sets in turn, beginning with the one at `first_set`.
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
  /// How much of the time threads waited together for processors that others used; empty where nobody tells.
  std::optional<double> waited_share{};
};

class Clock {
 public:
  virtual ~Clock() = default;
  /// "wall clock", "CUDA events around a graph", …
  [[nodiscard]] virtual std::string_view name() const = 0;
  /// Runs the batch to completion, back to back, and says how long it took.
  [[nodiscard]] virtual Reading measure(Runner& runner, const Batch& batch) = 0;
  /// Lets the host wait and the machine idle.
  virtual void rest(double seconds) = 0;
  /// Seconds since some moment, never decreasing: what budgets are counted in.
  [[nodiscard]] virtual double now_s() = 0;
  [[nodiscard]] virtual Telemetry telemetry() = 0;
  /// Batches shorter than this are not to be trusted.
  [[nodiscard]] virtual double shortest_batch_us() const = 0;
  /// What it would look at if this system told, in one sentence; empty when it sees all that it would.
  [[nodiscard]] virtual std::string unseen() const { return {}; }
};

}  // namespace thresher::arena
