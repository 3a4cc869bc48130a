#pragma once
/// Times a contestant against its baseline, interleaved in random order, in each mode that the budget allows.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "arena/random.hpp"
#include "arena/timing/clock.hpp"
#include "arena/timing/mode.hpp"
#include "arena/timing/rotation.hpp"
#include "arena/timing/statistics.hpp"

namespace thresher::arena {

struct TimingOptions {
  double budget_s = 8;  ///< for one contestant on one problem, over all modes
  int max_rounds = 60;
  double heat_s = 0.25;  ///< back-to-back calls before a sustained mode
  double rest_s = 0.02;  ///< idle time before each sample of a burst mode
  bool warm = false;     ///< the warm modes alone, with all of the budget
};

/// One mode's samples: microseconds per call, one of each role in every round.
struct ModeTimes {
  TimingMode mode = TimingMode::cold_burst;
  std::string not_measured;  ///< why there are no samples; empty when there are
  std::size_t calls_per_sample = 0;
  std::vector<double> baseline_us;
  std::vector<double> baseline_again_us;  ///< the baseline against itself: the machine's own noise
  std::vector<double> contestant_us;      ///< empty when the contestant is the baseline
  std::vector<Telemetry> telemetry;       ///< after each sample, in the order they were taken

  [[nodiscard]] int rounds() const noexcept { return static_cast<int>(baseline_us.size()); }
  /// Baseline time (the geometric mean of the round's two) over contestant time, round by round: drift cancels.
  [[nodiscard]] std::vector<double> speedups() const;
  /// Baseline over baseline again, round by round.
  [[nodiscard]] std::vector<double> self_ratios() const;
};

struct Times {
  std::vector<ModeTimes> modes;  ///< one for each of `all_modes`, in that order
  Rotation rotation;
  /// Why no time here can be believed; empty when nothing speaks against the clock. The modes then stop short.
  std::string clock_fault;

  [[nodiscard]] const ModeTimes& mode(TimingMode which) const { return modes.at(static_cast<std::size_t>(which)); }
};

/// A runner, and the clock of the rig that it lives on.
struct Clocked {
  Runner& runner;
  Clock& clock;
};

/// Times `contestant` against `baseline` over sets that hold the same data; without a contestant the baseline alone,
/// against itself. Budgets and rests are by the baseline's clock.
[[nodiscard]] Times time_against(std::optional<Clocked> contestant, Clocked baseline, const Rotation& rotation,
                                 const TimingOptions& options, Random& random);

/// Times `contestant` against `baseline` over the same input sets. `contestant` may be null: then only the baseline is
/// timed, against itself.
[[nodiscard]] Times time_against(Runner* contestant, Runner& baseline, Clock& clock, const Rotation& rotation,
                                 const TimingOptions& options, Random& random);

}  // namespace thresher::arena
