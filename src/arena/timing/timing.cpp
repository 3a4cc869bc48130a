#include "arena/timing/timing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace thresher::arena {
namespace {

enum class Role : std::uint8_t { baseline, baseline_again, contestant };

/// The device's clock may not show more than the host's watch around it, nor leave most of a long batch out.
std::string reading_fault(const Reading& reading, const Batch& batch) {
  if (!std::isfinite(reading.us_per_call) || reading.us_per_call <= 0) {
    return fmt::format("the clock says {} us for a call", reading.us_per_call);
  }
  const double slack_us = 20 / static_cast<double>(batch.calls);
  if (reading.us_per_call > reading.watch_us_per_call * 1.05 + slack_us) {
    return fmt::format("the clock says {:.3f} us for a call that took {:.3f} us by the host's watch",
                       reading.us_per_call, reading.watch_us_per_call);
  }
  const double watch_batch_us = reading.watch_us_per_call * static_cast<double>(batch.calls);
  if (watch_batch_us > 10'000 && reading.us_per_call < reading.watch_us_per_call / 3) {
    return fmt::format(
        "the clock says {:.3f} us for a call, and the host's watch {:.3f} us: most of the work escapes the clock",
        reading.us_per_call, reading.watch_us_per_call);
  }
  return {};
}

/// Times the batches of one contestant on one problem; keeps the place in the rotation, which all roles share so that
/// nobody finds a set that another has just used.
class Timer {
 public:
  Timer(std::optional<Clocked> contestant, Clocked baseline, const TimingOptions& options, Random& random, Times& times)
      : contestant_(contestant),
        baseline_(baseline),
        clock_(baseline.clock),
        options_(options),
        random_(random),
        times_(times) {}

  void run() {
    start_s_ = clock_.now_s();
    estimate();
    for (const TimingMode mode : all_modes) {
      times_.modes.emplace_back().mode = mode;
      if (times_.clock_fault.empty()) {
        time_mode(times_.modes.back());
      } else {
        times_.modes.back().not_measured = "the clock cannot be trusted";
      }
    }
  }

 private:
  Clocked& clocked(Role role) { return role == Role::contestant ? *contestant_ : baseline_; }
  std::size_t num_roles() const { return contestant_ ? 3 : 2; }
  double used_s() { return clock_.now_s() - start_s_; }

  std::optional<double> measure(Role role, const Batch& batch) {
    const Reading reading = clocked(role).clock.measure(clocked(role).runner, batch);
    times_.clock_fault = reading_fault(reading, batch);
    if (!times_.clock_fault.empty()) {
      return std::nullopt;
    }
    return reading.us_per_call;
  }

  /// The first call of each (which may compile or fault pages in) is not counted.
  void estimate() {
    for (const Role role : {Role::baseline, Role::contestant}) {
      if (role == Role::contestant && !contestant_) {
        continue;
      }
      for (int call = 0; call < 2 && times_.clock_fault.empty(); ++call) {
        const double us = measure(role, next_batch(TimingMode::cold_burst, 1)).value_or(0);
        if (call == 1) {
          fastest_us_ = fastest_us_ == 0 ? us : std::min(fastest_us_, us);
          slowest_us_ = std::max(slowest_us_, us);
        }
      }
    }
  }

  /// Enough calls for the clock, and whole turns of the rotation where they are that many.
  std::size_t calls_per_sample(TimingMode mode) const {
    const double shortest_us =
        std::max(clock_.shortest_batch_us(), contestant_ ? contestant_->clock.shortest_batch_us() : 0);
    const auto calls = static_cast<std::size_t>(std::ceil(shortest_us / fastest_us_));
    const std::size_t num_sets = is_cold(mode) ? times_.rotation.num_sets : 1;
    return calls <= num_sets ? std::max<std::size_t>(calls, 1) : (calls + num_sets - 1) / num_sets * num_sets;
  }

  Batch next_batch(TimingMode mode, std::size_t calls) {
    if (!is_cold(mode)) {
      return {calls, 0, 1};
    }
    const Batch batch{calls, next_set_, times_.rotation.num_sets};
    next_set_ = (next_set_ + calls) % times_.rotation.num_sets;
    return batch;
  }

  double round_s(const ModeTimes& mode) const {
    const auto calls = static_cast<double>(mode.calls_per_sample + (is_cold(mode.mode) ? 0 : 1));
    const double rest_s = is_burst(mode.mode) ? options_.rest_s : 0;
    return static_cast<double>(num_roles()) * (calls * slowest_us_ * 1e-6 + rest_s);
  }

  void time_mode(ModeTimes& mode) {
    if (options_.warm && is_cold(mode.mode)) {
      mode.not_measured = "the suite is timed warm";
      return;
    }
    const bool is_first = mode.mode == (options_.warm ? warm_modes : cold_modes).front();
    const double left_s = options_.budget_s - used_s();
    mode.calls_per_sample = calls_per_sample(mode.mode);
    const double least_s = min_rounds * round_s(mode) + (is_burst(mode.mode) ? 0 : options_.heat_s);
    if (!is_first && least_s > left_s) {
      mode.not_measured =
          fmt::format("it needs {:.1f} s and {:.1f} s of the time budget were left", least_s, std::max(left_s, 0.0));
      return;
    }
    const auto modes_left = static_cast<double>(all_modes.size() - static_cast<std::size_t>(mode.mode));
    const double share_end_s = used_s() + left_s / modes_left;
    if (!is_burst(mode.mode)) {
      heat_up(mode);
    }
    while (mode.rounds() < options_.max_rounds && times_.clock_fault.empty()) {
      const double end_s = mode.rounds() < min_rounds ? options_.budget_s : share_end_s;
      if (mode.rounds() > 0 && used_s() + round_s(mode) > end_s) {
        break;
      }
      time_round(mode);
    }
  }

  void heat_up(const ModeTimes& mode) {
    const double end_s = clock_.now_s() + options_.heat_s;
    for (std::size_t turn = 0; clock_.now_s() < end_s && times_.clock_fault.empty(); ++turn) {
      const Role role = turn % 2 == 1 && contestant_.has_value() ? Role::contestant : Role::baseline;
      (void)measure(role, next_batch(mode.mode, mode.calls_per_sample));
    }
  }

  /// One sample of each role in random order; a round that is cut short by a clock fault leaves nothing behind.
  void time_round(ModeTimes& mode) {
    std::vector<Role> order{Role::baseline, Role::baseline_again};
    if (contestant_) {
      order.push_back(Role::contestant);
    }
    random_.shuffle(order);
    std::array<double, 3> us{};
    std::vector<Telemetry> telemetry;
    for (const Role role : order) {
      if (is_burst(mode.mode)) {
        clock_.rest(options_.rest_s);
      }
      if (!is_cold(mode.mode) && !measure(role, {1, 0, 1})) {
        return;
      }
      const std::optional<double> sample_us = measure(role, next_batch(mode.mode, mode.calls_per_sample));
      if (!sample_us) {
        return;
      }
      us[static_cast<std::size_t>(role)] = *sample_us;
      telemetry.push_back(clocked(role).clock.telemetry());
    }
    mode.baseline_us.push_back(us[0]);
    mode.baseline_again_us.push_back(us[1]);
    if (contestant_) {
      mode.contestant_us.push_back(us[2]);
    }
    mode.telemetry.insert(mode.telemetry.end(), telemetry.begin(), telemetry.end());
  }

  std::optional<Clocked> contestant_;
  Clocked baseline_;
  Clock& clock_;
  const TimingOptions& options_;
  Random& random_;
  Times& times_;
  double start_s_ = 0;
  double fastest_us_ = 0;
  double slowest_us_ = 0;
  std::size_t next_set_ = 0;
};

/// A clock that ticks so coarsely that samples coincide cannot tell noise from none.
std::string stillness_fault(const Times& times) {
  for (const ModeTimes& mode : times.modes) {
    std::vector<double> samples = mode.baseline_us;
    samples.insert(samples.end(), mode.baseline_again_us.begin(), mode.baseline_again_us.end());
    std::sort(samples.begin(), samples.end());
    const auto distinct = std::unique(samples.begin(), samples.end()) - samples.begin();
    if (mode.rounds() >= min_rounds && distinct < 3) {
      return fmt::format("the clock gave {} different readings in {} samples of {}", distinct, samples.size(),
                         name(mode.mode));
    }
  }
  return {};
}

}  // namespace

std::vector<double> ModeTimes::speedups() const {
  std::vector<double> ratios;
  for (std::size_t round = 0; round < contestant_us.size(); ++round) {
    ratios.push_back(std::sqrt(baseline_us[round] * baseline_again_us[round]) / contestant_us[round]);
  }
  return ratios;
}

std::vector<double> ModeTimes::self_ratios() const {
  std::vector<double> ratios;
  for (std::size_t round = 0; round < baseline_us.size(); ++round) {
    ratios.push_back(baseline_us[round] / baseline_again_us[round]);
  }
  return ratios;
}

Times time_against(std::optional<Clocked> contestant, Clocked baseline, const Rotation& rotation,
                   const TimingOptions& options, Random& random) {
  Times times;
  times.rotation = rotation;
  Timer(contestant, baseline, options, random, times).run();
  if (times.clock_fault.empty()) {
    times.clock_fault = stillness_fault(times);
  }
  return times;
}

Times time_against(Runner* contestant, Runner& baseline, Clock& clock, const Rotation& rotation,
                   const TimingOptions& options, Random& random) {
  return time_against(contestant == nullptr ? std::nullopt : std::optional(Clocked{*contestant, clock}),
                      {baseline, clock}, rotation, options, random);
}

}  // namespace thresher::arena
