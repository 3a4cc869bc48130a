#include "arena/timing/timing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

namespace thresher::arena {
namespace {

/// The device's clock may not exceed the host's watch around it, nor omit most of a long batch.
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

/// Times the batches of one contestant on one problem. All roles share one place in the rotation, so that no role gets
/// a set that another has just used.
class Timer {
 public:
  /// Without an attendant the sets stay unchanged, and calls of a sample may share them.
  Timer(std::optional<Clocked> contestant, Clocked baseline, Attendant* attendant, const SetRanges& sets,
        const TimingOptions& options, Random& random, Times& times)
      : contestant_(contestant),
        baseline_(baseline),
        attendant_(attendant),
        sets_(sets),
        clock_(baseline.clock),
        options_(options),
        random_(random),
        times_(times) {}

  void run() {
    start_s_ = clock_.now_s();
    estimate();
    for (const TimingMode mode : all_modes) {
      times_.modes.emplace_back().mode = mode;
      if (!is_over()) {
        time_mode(times_.modes.back());
      } else {
        times_.modes.back().not_measured =
            times_.clock_fault.empty() ? "its outputs do not hold" : "the clock cannot be trusted";
      }
    }
    go_on_while_too_noisy();
    times_.busy = is_over() ? "" : why_too_few();
    for (ModeTimes& mode : times_.modes) {
      if (mode.rounds() == 0 && mode.waited > 0) {
        mode.not_measured = fmt::format("this machine is busy: {} samples waited for processors", mode.waited);
      }
    }
    times_.sampled_s = used_s();
  }

 private:
  void check_time() const {
    if (options_.check_time) {
      options_.check_time();
    }
  }
  [[nodiscard]] bool is_over() const { return !times_.clock_fault.empty() || !times_.output_fault.empty(); }
  Clocked& clocked(Role role) { return role == Role::contestant ? *contestant_ : baseline_; }
  std::size_t num_roles() const { return contestant_ ? 3 : 2; }
  /// Without the time spent aside.
  double used_s() { return clock_.now_s() - start_s_ - times_.aside_s; }

  std::optional<double> measure(Role role, const Batch& batch) {
    const Reading reading = clocked(role).clock.measure(clocked(role).runner, batch);
    times_.clock_fault = options_.clock_matters ? reading_fault(reading, batch) : "";
    waited_ = options_.clock_matters && reading.waited_share.value_or(0) > max_waited_share;
    if (!times_.clock_fault.empty()) {
      return std::nullopt;
    }
    return reading.us_per_call;
  }

  /// Returns its seconds; they count as time spent aside.
  template <class Work>
  double aside(Work work) {
    const double start_s = clock_.now_s();
    work();
    const double passed_s = clock_.now_s() - start_s;
    times_.aside_s += passed_s;
    return passed_s;
  }

  void prepare(Role role, const Batch& batch, TimingMode mode) {
    if (attendant_ != nullptr) {
      idle_s_ += aside([&] { attendant_->prepare(role, batch, is_cold(mode)); });
    }
  }
  void make(Role role, const Batch& batch) {
    if (attendant_ != nullptr) {
      (void)aside([&] { attendant_->make(role, batch); });
    }
  }
  void put_in_inputs(Role role, const Batch& batch) {
    if (attendant_ != nullptr) {
      (void)aside([&] { attendant_->put_in_inputs(role, batch); });
    }
  }

  /// Checks whole outputs as long as that takes no more time than the samples, and occasionally in any case.
  [[nodiscard]] bool inspect(Role role, const Batch& batch) {
    if (attendant_ == nullptr) {
      return true;
    }
    const bool closely = random_.below(16) == 0 || times_.aside_s < used_s() / 2;
    idle_s_ += aside([&] { times_.output_fault = attendant_->inspect(role, batch, closely); });
    times_.faulty = role;
    return times_.output_fault.empty();
  }

  /// Does not count the first call of each (which may compile or fault pages in), nor those that waited, as long as
  /// others are available.
  void estimate() {
    constexpr int max_calls = 8;
    for (const Role role : {Role::baseline, Role::contestant}) {
      if (role == Role::contestant && !contestant_) {
        continue;
      }
      bool is_known = false;
      for (int call = 0; call < max_calls && !is_known && !is_over(); ++call) {
        check_time();
        const Batch batch = next_batch(TimingMode::cold_burst, 1);
        prepare(role, batch, TimingMode::cold_burst);
        const double us = measure(role, batch).value_or(0);
        is_known = call > 0 && (!waited_ || call + 1 == max_calls);
        if (!is_over() && inspect(role, batch) && is_known) {
          fastest_us_ = fastest_us_ == 0 ? us : std::min(fastest_us_, us);
          slowest_us_ = std::max(slowest_us_, us);
        }
      }
    }
  }

  /// Sets that timed calls of the mode may use; the last of the warm ones is for warming up.
  std::size_t usable_sets(TimingMode mode) const {
    return is_cold(mode) ? sets_.cold.count : attendant_ == nullptr ? 1 : sets_.warm.count - 1;
  }

  /// Enough calls for the clock, in whole cycles of the rotation if they exceed one. With an attendant at most one call
  /// per set.
  std::size_t calls_per_sample(TimingMode mode) const {
    const double shortest_us =
        std::max(clock_.shortest_batch_us(), contestant_ ? contestant_->clock.shortest_batch_us() : 0);
    const auto calls = fastest_us_ > 0 ? static_cast<std::size_t>(std::max(1.0, std::ceil(shortest_us / fastest_us_)))
                                       : std::size_t{1};
    const std::size_t sets = usable_sets(mode);
    if (attendant_ != nullptr) {
      return std::min(calls, sets);
    }
    return calls <= sets ? calls : (calls + sets - 1) / sets * sets;
  }

  Batch next_batch(TimingMode mode, std::size_t calls) {
    if (!is_cold(mode)) {
      return attendant_ == nullptr ? Batch{calls, sets_.warm.base, 1} : sets_.warm.batch(calls);
    }
    const Batch batch{calls, next_set_, sets_.cold.count};  // they begin with the first set
    next_set_ = (next_set_ + calls) % sets_.cold.count;
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
    const bool is_first = mode.mode == deciding_modes().front();
    if (options_.shortly && !is_first) {
      mode.not_measured = "one mode was wanted";
      return;
    }
    const double left_s = options_.budget_s - used_s();
    mode.calls_per_sample = calls_per_sample(mode.mode);
    const double min_s = min_rounds * round_s(mode) + (is_burst(mode.mode) ? 0 : options_.heat_s);
    if (!is_first && min_s > left_s) {
      mode.not_measured =
          fmt::format("it needs {:.1f} s and {:.1f} s of the time budget were left", min_s, std::max(left_s, 0.0));
      return;
    }
    const auto modes_left =
        options_.shortly ? 1.0 : static_cast<double>(all_modes.size() - static_cast<std::size_t>(mode.mode));
    time_rounds(mode, options_.max_rounds, used_s() + left_s / modes_left, options_.budget_s);
  }

  /// Takes rounds of samples until `end_s`, and the first few of a mode until `last_s`. Work aside may take equally
  /// long.
  void time_rounds(ModeTimes& mode, int most, double end_s, double last_s) {
    const double aside_end_s = times_.aside_s + std::max(end_s - used_s(), 0.0);
    sample_again_until_s_ = last_s;
    sample_again_until_aside_s_ = times_.aside_s + std::max(last_s - used_s(), 0.0);
    if (!is_burst(mode.mode)) {
      heat_up(mode, options_.heat_s);
    }
    idle_s_ = 0;
    while (mode.rounds() < most && !is_over()) {
      const bool is_short = mode.rounds() < min_rounds;
      if (mode.rounds() > 0 && !needs_another(mode) && used_s() + round_s(mode) > (is_short ? last_s : end_s)) {
        break;
      }
      if (mode.waited > 0 && !has_time_for_another_sample()) {
        break;
      }
      if (times_.aside_s > aside_end_s && (!is_short || mode.waited > 0)) {
        break;
      }
      time_round(mode);
    }
  }

  [[nodiscard]] bool has_time_for_another_sample() {
    return used_s() < sample_again_until_s_ && times_.aside_s < sample_again_until_aside_s_;
  }

  [[nodiscard]] std::array<TimingMode, 2> deciding_modes() const { return options_.warm ? warm_modes : cold_modes; }

  /// The comparison of the mode if its remaining rounds equal those that were taken.
  [[nodiscard]] static Comparison after_rounds(const ModeTimes& mode, int rounds) {
    Random random(static_cast<std::uint64_t>(mode.rounds()));
    return compare(median_estimate(mode.speedups(), random), median_estimate(mode.self_ratios(), random), rounds);
  }
  [[nodiscard]] static bool is_too_noisy(const ModeTimes& mode) {
    return mode.rounds() == 0 || after_rounds(mode, mode.rounds()) == Comparison::too_noisy;
  }
  /// A contestant that would lose gets another round, however long it takes: one round alone rejects none, and one that
  /// is slower beyond doubt is rejected. Machines on which samples are dropped are excepted: the round may never come.
  [[nodiscard]] bool needs_another(const ModeTimes& mode) const {
    return contestant_ && mode.mode == deciding_modes().front() && mode.rounds() == 1 && mode.waited == 0 &&
           after_rounds(mode, mode.rounds() + 1) == Comparison::slower;
  }

  /// Doubles the number of rounds repeatedly, so that few comparisons are made: each comparison of equals is another
  /// chance to find them different.
  void go_on_while_too_noisy() {
    for (double times = 2; contestant_ && times <= options_.patience; times *= 2) {
      const double until_s = times * options_.budget_s;
      for (const TimingMode which : deciding_modes()) {
        ModeTimes& mode = times_.modes[static_cast<std::size_t>(which)];
        if ((mode.rounds() > 0 || mode.waited > 0) && !is_over() && is_too_noisy(mode)) {
          mode.went_on = true;
          const bool is_last = which == deciding_modes().back();
          const double end_s = used_s() + std::max(until_s - used_s(), 0.0) / (is_last ? 1 : 2);
          time_rounds(mode, static_cast<int>(times * options_.max_rounds), end_s, until_s);
        }
      }
    }
  }

  /// The reason, for the first deciding mode in which enough samples were taken and too few remain.
  [[nodiscard]] std::string why_too_few() const {
    for (const TimingMode which : deciding_modes()) {
      const ModeTimes& mode = times_.mode(which);
      const std::size_t kept = static_cast<std::size_t>(mode.rounds()) * num_roles();
      if (mode.rounds() < min_rounds && mode.waited > 0 &&
          (kept == 0 || kept + mode.waited >= min_rounds * num_roles())) {
        return fmt::format(
            "this machine is busy: in {} {} of {} samples waited more than {:.0f} % of their time for processors that "
            "others used, and {} rounds remain of the {} that are needed",
            name(which), mode.waited, kept + mode.waited, 100 * max_waited_share, mode.rounds(), min_rounds);
      }
    }
    return {};
  }

  void heat_up(const ModeTimes& mode, double seconds) {
    const double end_s = clock_.now_s() + seconds;
    while (clock_.now_s() < end_s && !is_over()) {
      (void)measure(Role::baseline, sets_.heating.batch(mode.calls_per_sample));
    }
  }

  /// The steps between inputs and sample. A burst pauses; a sustained mode works where the machine had been idle; warm
  /// modes make a call that warms the weights.
  [[nodiscard]] bool lead_in(Role role, const ModeTimes& mode) {
    if (is_burst(mode.mode)) {
      clock_.rest(options_.rest_s);
    } else if (attendant_ != nullptr) {
      aside([&] { heat_up(mode, std::min(std::exchange(idle_s_, 0), options_.heat_s)); });
    }
    return is_over() ? false : is_cold(mode.mode) || measure(role, warm_up()).has_value();
  }

  Batch warm_up() const {
    const std::size_t last = sets_.warm.base + sets_.warm.count - 1;
    return {1, last, last + 1};
  }

  /// One sample that counts, after others that do not. Empty where its outputs do not hold, and where all waited until
  /// no time was left.
  std::optional<double> sample(Role role, ModeTimes& mode) {
    for (;;) {
      const std::optional<double> us = sample_of_any_kind(role, mode);
      if (us && waited_) {
        ++mode.waited;
        if (has_time_for_another_sample()) {
          continue;
        }
        return std::nullopt;
      }
      const SampleKind kind = attendant_ == nullptr ? SampleKind::counted : attendant_->kind();
      if (!us || kind == SampleKind::counted) {
        return us;
      }
      if (kind == SampleKind::seen) {
        mode.seen_us.push_back(*us);
      }
    }
  }

  std::optional<double> sample_of_any_kind(Role role, const ModeTimes& mode) {
    check_time();
    const Batch batch = next_batch(mode.mode, mode.calls_per_sample);
    // A sustained mode has no time for two steps: the machine would cool down.
    const bool in_two_steps = !is_cold(mode.mode) && is_burst(mode.mode);
    if (!is_cold(mode.mode)) {
      prepare(role, warm_up(), mode.mode);
    }
    in_two_steps ? make(role, batch) : prepare(role, batch, mode.mode);
    if (!lead_in(role, mode)) {
      return std::nullopt;
    }
    if (in_two_steps) {
      put_in_inputs(role, batch);
    }
    const std::optional<double> us = measure(role, batch);
    return us && inspect(role, batch) ? us : std::nullopt;
  }

  /// One sample of each role in random order; a round that is cut short leaves no samples.
  void time_round(ModeTimes& mode) {
    std::vector<Role> order{Role::baseline, Role::baseline_again};
    if (contestant_) {
      order.push_back(Role::contestant);
    }
    random_.shuffle(order);
    std::array<double, 3> us{};
    std::vector<Telemetry> telemetry;
    for (const Role role : order) {
      const std::optional<double> sample_us = sample(role, mode);
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
  Attendant* attendant_;
  const SetRanges& sets_;
  Clock& clock_;
  const TimingOptions& options_;
  Random& random_;
  Times& times_;
  double start_s_ = 0;
  double fastest_us_ = 0;
  double slowest_us_ = 0;
  double idle_s_ = 0;                ///< time without work, in a sustained mode
  bool waited_ = false;              ///< the last measurement, for processors that others used
  double sample_again_until_s_ = 0;  ///< replaces dropped samples until this time is used
  double sample_again_until_aside_s_ = 0;
  std::size_t next_set_ = 0;
};

/// A clock with a coarse resolution makes samples coincide, and then noise cannot be seen.
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

Times time_over(std::optional<Clocked> contestant, Clocked baseline, Attendant* attendant, const Rotation& rotation,
                const SetRanges& sets, const TimingOptions& options, Random& random) {
  Times times;
  times.rotation = rotation;
  Timer(contestant, baseline, attendant, sets, options, random, times).run();
  if (times.clock_fault.empty() && times.output_fault.empty()) {
    times.clock_fault = stillness_fault(times);
  }
  return times;
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

Times time_against(std::optional<Clocked> contestant, Clocked baseline, Attendant& attendant, const Rotation& rotation,
                   const SetRanges& sets, const TimingOptions& options, Random& random) {
  return time_over(contestant, baseline, &attendant, rotation, sets, options, random);
}

Times time_against(Runner* contestant, Runner& baseline, Clock& clock, const Rotation& rotation,
                   const TimingOptions& options, Random& random) {
  const SetRange all{0, rotation.num_sets};
  return time_over(contestant == nullptr ? std::nullopt : std::optional(Clocked{*contestant, clock}), {baseline, clock},
                   nullptr, rotation, {all, {0, 1}, all}, options, random);
}

}  // namespace thresher::arena
