#include "arena/gates/timed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>

#include "arena/gates/verified_calls.hpp"
#include "arena/operation/operation.hpp"
#include "arena/random.hpp"
#include "arena/results/mode_samples.hpp"

namespace thresher::arena {
namespace {

/// Below these factors nothing is proved, however quiet the run (docs/harness/audit-and-honesty.md argues for each).
/// Above them the spread of the run's own samples decides.
constexpr double floor_of_disturbance = 1.05;  // a machine that works more is warmer and slower
constexpr double floor_of_other_data = 1.15;   // a card draws more power on some data than on others
constexpr double floor_of_seen_inputs = 1.02;  // nothing differs between the two but what is remembered
/// A baseline is too slow at this factor over its time in a run of its own. Another process costs at most this factor,
/// plus a few microseconds per request.
constexpr double crawling_factor = 2;
constexpr double asking_us = 10;
/// The number of consecutive repetitions, each on samples of its own, before an accusation.
constexpr int times_in_a_row = 3;
constexpr int rounds_of_a_check = 10;
constexpr int rounds_of_a_look_back = 24;  // a quarter of its samples use inputs that were seen

/// A reason not to trust the times of a problem. Where the contestant is not its cause, the problem is not judged.
struct Objection {
  std::string sentence{};
  Outcome outcome = Outcome::failed;
  [[nodiscard]] explicit operator bool() const { return !sentence.empty(); }
};

/// Times one problem, and checks the times against everything that they depend on.
class ProblemTimer {
 public:
  ProblemTimer(Match& match, const Problem& problem)
      : match_(match),
        problem_(problem),
        secret_seed_(secret_seed()),
        random_(derive_seed(match.seed, "order of calls " + label(problem))),
        calls_(calls_in_a_sample(match, problem)) {
    verification_.problem = label(problem);
    verification_.secret_seed = secret_seed_;
  }

  /// Fills `objection` where there is one.
  Times run(Objection& objection) {
    VerifiedCalls calls = make_calls(main_distribution(), contestant());
    calls.change_weights_too();
    Times times = time(calls, match_.timing);
    objection = objection_to(times, calls);
    if (contestant() == nullptr || objection || !times.clock_fault.empty()) {
      return times;
    }
    objection = memory(times, calls);
    if (!objection) {
      objection = disturbance(calls, times.mode(deciding_mode()).baseline_us);
    }
    if (!objection) {
      objection = crawling(times);
    }
    if (!objection) {
      objection = dependence_on_data(times.mode(deciding_mode()).speedups());
    }
    return times;
  }

  [[nodiscard]] const ProblemVerification& verification() const { return verification_; }

 private:
  [[nodiscard]] Distribution main_distribution() const { return match_.suite.distributions.front(); }
  [[nodiscard]] const Contestant* contestant() const { return match_.is_baseline() ? nullptr : &match_.contestant; }
  [[nodiscard]] std::array<TimingMode, 2> deciding_modes() const {
    return match_.timing.warm ? warm_modes : cold_modes;
  }
  [[nodiscard]] TimingMode deciding_mode() const { return deciding_modes().front(); }

  VerifiedCalls make_calls(Distribution distribution, const Contestant* contestant) {
    return VerifiedCalls(problem_, distribution, contestant, match_.baseline, match_.rig, match_.environment, calls_,
                         match_.timing.warm, derive_seed(secret_seed_, fmt::format("samples {}", makings_++)));
  }

  Times time(VerifiedCalls& calls, const TimingOptions& options) {
    Times times = time_against(calls.contestant(), calls.baseline(), calls, calls.plan().rotation,
                               calls.plan().ranges(), options, random_);
    verification_.sampled_s += times.sampled_s;
    verification_.aside_s += times.aside_s;
    return times;
  }

  /// A few rounds of the first deciding mode.
  ModeTimes shortly(VerifiedCalls& calls, Objection& objection, int rounds = rounds_of_a_check) {
    TimingOptions options = match_.timing;
    options.shortly = true;
    options.patience = 1;
    options.max_rounds = rounds;
    options.budget_s = std::max(0.5, options.budget_s / 4);
    const Times times = time(calls, options);
    objection = objection_to(times, calls);
    return times.mode(deciding_mode());
  }

  [[nodiscard]] Objection accuse(const std::string& sentence) const {
    return {fmt::format("{}: {}", label(problem_), sentence), Outcome::failed};
  }

  /// Checks outputs and buffers. A wrong baseline proves nothing about others.
  Objection objection_to(const Times& times, VerifiedCalls& calls) {
    std::string fault = times.output_fault;
    bool is_baselines =
        contestant() != nullptr && !fault.empty() && (times.faulty != Role::contestant || calls.baseline_is_wrong());
    if (std::string spoilt = is_baselines && calls.share_a_rig() ? calls.last_look() : ""; !spoilt.empty()) {
      is_baselines = false;  // another party wrote it
      fault = std::move(spoilt);
    }
    if (is_baselines && times.faulty != Role::contestant) {
      fault = "the baseline beside it did not hold: " + fault;
    }
    if (fault.empty() && times.clock_fault.empty()) {
      fault = calls.last_look();
    }
    const VerifiedCounts seen = calls.take_verified_counts();
    verification_.samples += seen.samples;
    verification_.calls += seen.calls;
    verification_.calls_looked_at += seen.looked;
    verification_.whole_outputs += seen.whole;
    verification_.inputs_compared += seen.compared;
    verification_.uncounted += seen.uncounted;
    for (const ModeTimes& mode : times.modes) {
      verification_.waited += mode.waited;
    }
    if (!fault.empty()) {
      Objection objection = accuse(fault);
      objection.outcome = is_baselines ? Outcome::not_judged : Outcome::failed;
      return objection;
    }
    return times.busy.empty() ? Objection{} : Objection{label(problem_) + ": " + times.busy, Outcome::not_judged};
  }

  /// Whether it is faster on inputs that it has seen, in the very stream that gives its times. A suspicion from the few
  /// samples of that stream is examined further.
  Objection memory(const Times& times, VerifiedCalls& calls) {
    constexpr double probable = 0.05;
    std::vector<double> fresh;  // of all modes, each relative to the median of its own
    std::vector<double> seen;
    for (const ModeTimes& mode : times.modes) {
      const double middle_us = mode.rounds() > 0 ? median(mode.contestant_us) : 1;
      const auto beside = [&](double us) { return us / middle_us; };
      std::transform(mode.contestant_us.begin(), mode.contestant_us.end(), std::back_inserter(fresh), beside);
      if (mode.rounds() > 0) {
        std::transform(mode.seen_us.begin(), mode.seen_us.end(), std::back_inserter(seen), beside);
      }
    }
    if (seen.size() < 2 || rank_test(fresh, seen) >= probable) {
      return {};
    }
    calls.look_back_in_one_of(2);
    ModeTimes taken;
    for (int turn = 0; turn < times_in_a_row; ++turn) {
      Objection objection;
      taken = shortly(calls, objection, rounds_of_a_look_back);
      if (objection || !is_beyond_doubt(taken.contestant_us, taken.seen_us, floor_of_seen_inputs)) {
        return objection;
      }
    }
    return accuse(fmt::format(
        "it keeps answers: {:.3g} us a call on inputs that it had not seen, {:.3g} us on those that it had, {} "
        "times in a row",
        median(taken.contestant_us), median(taken.seen_us), times_in_a_row));
  }

  /// Whether the baseline is faster without the contestant. It compares samples of the baseline taken while the
  /// contestant was present with samples taken after it left. If a repetition disagrees, the samples contradict each
  /// other and cannot be judged.
  Objection disturbance(VerifiedCalls& calls, std::vector<double> beside_us) {
    for (int turn = 1;; ++turn) {
      Objection objection;
      calls.let_contestant_go();
      match_.contestant.start_anew();
      const std::vector<double> alone_us = shortly(calls, objection).baseline_us;
      const bool is_faster_alone = is_beyond_doubt(beside_us, alone_us, floor_of_disturbance);
      if (!objection && turn > 1 && !is_faster_alone) {
        return {
            fmt::format("{}: the baseline's samples contradict each other: it was faster when {} had gone, and then "
                        "it was not, {:.3g} us a call beside it and {:.3g} us alone",
                        label(problem_), match_.contestant.name(), median(beside_us), median(alone_us)),
            Outcome::not_judged};
      }
      if (objection || !is_faster_alone) {
        return objection;
      }
      if (turn == times_in_a_row) {
        return accuse(fmt::format(
            "it slows its baseline down: {:.3g} us a call beside it, {:.3g} us when it had gone, {} times in a row",
            median(beside_us), median(alone_us), times_in_a_row));
      }
      calls.call_contestant_back(*contestant(), match_.rig);
      beside_us = shortly(calls, objection).baseline_us;
      if (objection) {
        return objection;
      }
    }
  }

  /// Whether the baseline took much longer here than in its own run. A ratio to a slowed baseline says nothing.
  [[nodiscard]] Objection crawling(const Times& times) const {
    if (match_.baselines_row == nullptr) {
      return {};
    }
    for (const TimingMode which : deciding_modes()) {
      const ModeTimes& mode = times.mode(which);
      const auto is_its_own = [&](const Measurement& one) {
        return one.problem == label(problem_) && one.mode == which && one.rounds >= min_rounds;
      };
      const std::vector<Measurement>& row = match_.baselines_row->measurements;
      const auto own = std::find_if(row.begin(), row.end(), is_its_own);
      if (own == row.end() || mode.rounds() < min_rounds) {
        continue;
      }
      Random random(derive_seed(match_.seed, "crawling"));
      const double here_us = median_estimate(mode.baseline_us, random).low;
      if (here_us > crawling_factor * own->baseline_us.high + asking_us) {
        const double beside_us = median(mode.baseline_us);
        return {fmt::format("{}: the baseline was {:.2g} times slower beside {} than alone ({:.3g} us a call against "
                            "{:.3g} us, {}); the machine is probably busy, run again",
                            label(problem_), beside_us / own->baseline_us.value, match_.contestant.name(), beside_us,
                            own->baseline_us.value, name(which)),
                Outcome::not_judged};
      }
    }
    return {};
  }

  /// The distributions to time beside the suite's own choice: its other ones and `normal`, else those that every kernel
  /// must support. Integers fit into every narrower format, so that a kernel that looks for this would be as fast.
  [[nodiscard]] std::vector<Distribution> other_distributions() const {
    const auto offered = [&](const auto& distributions) {
      std::vector<Distribution> others(distributions.begin(), distributions.end());
      std::erase_if(others, [&](Distribution other) {
        return other == main_distribution() || !problem_.operation().offers(problem_, other);
      });
      return others;
    };
    std::vector<Distribution> others = offered(match_.suite.distributions);
    const std::vector<Distribution> ordinary = offered(ordinary_distributions);
    if (others.empty()) {
      others = ordinary;
    } else if (std::find(ordinary.begin(), ordinary.end(), Distribution::normal) != ordinary.end()) {
      others.push_back(Distribution::normal);
    }
    if (std::any_of(others.begin(), others.end(), [](Distribution other) { return other != Distribution::integers; })) {
      std::erase(others, Distribution::integers);
    }
    return others;
  }

  /// Whether it is slower, relative to its baseline, on another distribution, drawn at random.
  Objection dependence_on_data(std::vector<double> speedups) {
    const std::vector<Distribution> others = other_distributions();
    if (others.empty()) {
      return {};
    }
    Random random(derive_seed(secret_seed_, "other data"));
    const Distribution other = others[random.below(others.size())];
    verification_.other_data = other;
    Objection objection;
    for (int turn = 0; turn < times_in_a_row; ++turn) {
      if (turn > 0) {
        VerifiedCalls calls = make_calls(main_distribution(), contestant());
        calls.change_weights_too();
        speedups = shortly(calls, objection).speedups();
      }
      std::vector<double> on_other;
      if (!objection) {
        VerifiedCalls calls = make_calls(other, contestant());
        calls.change_weights_too();
        on_other = shortly(calls, objection).speedups();
      }
      if (objection || !is_beyond_doubt(speedups, on_other, floor_of_other_data)) {
        return objection;
      }
      if (turn + 1 == times_in_a_row) {
        return accuse(
            fmt::format("it depends on the data: {:.3f}x its baseline's speed on {} inputs and {:.3f}x on {} "
                        "ones, {} times in a row",
                        median(speedups), name(main_distribution()), median(on_other), name(other), times_in_a_row));
      }
    }
    return {};
  }

  Match& match_;
  const Problem& problem_;
  std::uint64_t secret_seed_;
  Random random_;
  std::size_t calls_;
  int makings_ = 0;
  ProblemVerification verification_;
};

/// The least time by the machine's ceilings, from its data sheet or measured today. Warm calls need not read memory.
double min_us(const Cost& cost, double operations_per_s, double bytes_per_s, TimingMode mode) {
  const double matrix_us = operations_per_s > 0 ? cost.operations / operations_per_s * 1e6 : 0;
  const double memory_us = bytes_per_s > 0 && is_cold(mode) ? cost.compulsory_bytes / bytes_per_s * 1e6 : 0;
  return std::max(matrix_us, memory_us);
}

Measurement measurement_of(const Match& match, const Problem& problem, const Times& times, const ModeTimes& mode) {
  Measurement measurement;
  measurement.problem = label(problem);
  measurement.mode = mode.mode;
  measurement.not_measured = mode.not_measured;
  measurement.rounds = mode.rounds();
  if (mode.rounds() == 0) {
    return measurement;
  }
  Random random(derive_seed(match.seed, "bootstrap " + measurement.problem + std::string(name(mode.mode))));
  const Cost cost = problem.operation().cost(problem);
  const Ceilings& ceilings = match.rig.ceilings();
  std::vector<double> baseline_us = mode.baseline_us;
  baseline_us.insert(baseline_us.end(), mode.baseline_again_us.begin(), mode.baseline_again_us.end());
  measurement.baseline_us = median_estimate(baseline_us, random);
  measurement.self = median_estimate(mode.self_ratios(), random);
  measurement.contestant_us =
      match.is_baseline() ? measurement.baseline_us : median_estimate(mode.contestant_us, random);
  measurement.speedup = match.is_baseline() ? Estimate{1, 1, 1} : median_estimate(mode.speedups(), random);
  measurement.comparison =
      match.is_baseline() ? "baseline" : name(compare(measurement.speedup, measurement.self, mode.rounds()));
  const auto least = [&](double operations_per_s) {
    return min_us(cost, ceilings.rate(operations_per_s, match.contestant.numerics()), ceilings.bytes_per_s, mode.mode);
  };
  measurement.floor_us = least(ceilings.peak_operations_per_s);
  measurement.sustained_us = least(ceilings.sustained_operations_per_s);
  measurement.samples = to_json(ModeSamples{mode.calls_per_sample, mode.baseline_us, mode.baseline_again_us,
                                            mode.contestant_us, mode.seen_us, mode.telemetry, times.rotation});
  return measurement;
}

class TimedGate final : public Gate {
 public:
  [[nodiscard]] GateKind kind() const override { return GateKind::timed; }

  [[nodiscard]] GateResult judge(Match& match) const override {
    if (!match.suite.timed) {
      return {kind(), Outcome::skipped, fmt::format("the suite {} says timed = false", match.suite.name)};
    }
    if (const std::string obstacle = unsupported_reason(match.suite, match.baseline); !obstacle.empty()) {
      return {kind(), Outcome::not_judged,
              fmt::format("the baseline {} is not for these formats: {}", match.baseline.name(), obstacle)};
    }
    const Ceilings& ceilings = match.rig.ceilings();
    std::vector<ProblemVerification> verification;
    for (const Problem& problem : match.suite.problems) {
      match.progress.begin(std::string(name(kind())), fmt::format("{} on {}", match.contestant.name(), label(problem)));
      ProblemTimer timer(match, problem);
      Objection objection;
      match.timed.push_back({problem, timer.run(objection)});
      match.progress.end();
      verification.push_back(timer.verification());
      if (objection) {
        return {kind(), objection.outcome, objection.sentence, evidence(match, ceilings, verification)};
      }
      const Times& times = match.timed.back().times;
      if (!times.clock_fault.empty()) {
        return {kind(), Outcome::not_judged, "the clock cannot be trusted: " + times.clock_fault};
      }
      for (const ModeTimes& mode : times.modes) {
        match.measurements.push_back(measurement_of(match, problem, times, mode));
      }
    }
    return {kind(), Outcome::passed, summary(match), evidence(match, ceilings, verification)};
  }

 private:
  static std::string summary(const Match& match) {
    const auto measured = std::count_if(match.measurements.begin(), match.measurements.end(),
                                        [](const Measurement& measurement) { return measurement.rounds > 0; });
    std::string sentence = fmt::format("{} problems, {} of {} modes measured with the {}", match.timed.size(), measured,
                                       match.measurements.size(), match.rig.clock().name());
    if (match.timing.patience > 1 && went_on(match)) {
      sentence +=
          fmt::format("; the machine was busy: some samples were taken past the budget, up to {:g} times {:g} s",
                      match.timing.patience, match.timing.budget_s);
    }
    if (const std::string unseen = match.rig.clock().unseen(); !unseen.empty()) {
      sentence += "; " + unseen;
    }
    for (const TimedProblem& timed : match.timed) {
      if (const std::string why = timed.times.rotation.why_not_cold(); !why.empty() && !match.timing.warm) {
        return sentence + "; the cold times are not cold: " + why;
      }
    }
    return sentence;
  }

  static bool went_on(const Match& match) {
    return std::any_of(match.timed.begin(), match.timed.end(), [](const TimedProblem& timed) {
      return std::any_of(timed.times.modes.begin(), timed.times.modes.end(),
                         [](const ModeTimes& mode) { return mode.went_on; });
    });
  }

  static TimedEvidence evidence(const Match& match, const Ceilings& ceilings,
                                std::vector<ProblemVerification> verification) {
    return {std::string(match.rig.clock().name()), match.suite.distributions.front(), match.timing.budget_s, ceilings,
            std::move(verification)};
  }
};

}  // namespace

std::unique_ptr<Gate> make_timed_gate() { return std::make_unique<TimedGate>(); }

std::vector<ModeSpeedup> deciding_speedups(const Match& match) {
  std::vector<ModeSpeedup> found;
  for (const TimingMode mode : match.timing.warm ? warm_modes : cold_modes) {
    ModeSpeedup summary;
    summary.mode = mode;
    std::vector<std::vector<double>> speedups;
    std::vector<std::vector<double>> selfs;
    for (const TimedProblem& timed : match.timed) {
      const ModeTimes& times = timed.times.mode(mode);
      speedups.push_back(times.speedups());
      selfs.push_back(times.self_ratios());
      summary.rounds = speedups.size() == 1 ? times.rounds() : std::min(summary.rounds, times.rounds());
    }
    if (speedups.empty() || summary.rounds == 0) {
      continue;
    }
    Random random(derive_seed(match.seed, "bootstrap " + std::string(name(mode))));
    summary.geomean = geometric_mean(speedups, random);
    summary.self = geometric_mean(selfs, random);
    for (const std::vector<double>& ratios : speedups) {
      summary.each.push_back(median(ratios));
    }
    found.push_back(std::move(summary));
  }
  return found;
}

}  // namespace thresher::arena
