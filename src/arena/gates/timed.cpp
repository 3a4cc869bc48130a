#include "arena/gates/timed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "arena/operation/input_sets.hpp"
#include "arena/operation/operation.hpp"
#include "arena/random.hpp"

namespace thresher::arena {
namespace {

Times time_problem(Match& match, const Problem& problem) {
  Rig& home = match.baseline.rig(match.rig);
  Rig& away = match.contestant.rig(match.rig);
  const auto inputs_on = [&](Rig& rig, std::size_t most) {
    return make_input_sets(rig, problem, match.suite.distributions.front(), match.seed, most);
  };
  const InputSets inputs = inputs_on(home, match.timing.warm ? 1 : max_sets);
  // Whoever lives elsewhere has the same data there, in as many sets.
  const std::optional<InputSets> inputs_away =
      &home == &away ? std::nullopt : std::optional(inputs_on(away, inputs.rotation.num_sets));
  const InputSets& contestant_inputs = inputs_away ? *inputs_away : inputs;
  Random random(derive_seed(match.seed, "order of calls " + label(problem)));
  const std::unique_ptr<Runner> baseline = match.baseline.prepare(problem, home.memory(), inputs.sets);
  if (match.is_baseline()) {
    return time_against(nullptr, *baseline, home.clock(), inputs.rotation, match.timing, random);
  }
  const std::unique_ptr<Runner> contestant =
      match.contestant.prepare(problem, away.memory(), contestant_inputs.sets);
  return time_against(Clocked{*contestant, away.clock()}, {*baseline, home.clock()}, contestant_inputs.rotation,
                      match.timing, random);
}

nlohmann::json telemetry_json(const std::vector<Telemetry>& samples) {
  nlohmann::json json = nlohmann::json::array();
  for (const Telemetry& sample : samples) {
    nlohmann::json one = nlohmann::json::object();
    const auto add = [&](const char* key, const std::optional<double>& value) {
      if (value) {
        one[key] = *value;
      }
    };
    add("mhz", sample.clock_mhz);
    add("w", sample.power_w);
    add("c", sample.temperature_c);
    if (!sample.throttle_reasons.empty()) {
      one["throttled"] = sample.throttle_reasons;
    }
    json.push_back(std::move(one));
  }
  return json;
}

nlohmann::json rotation_json(const Rotation& rotation) {
  return {{"sets", rotation.num_sets},
          {"bytes", rotation.rotated_bytes()},
          {"last_level_cache_bytes", rotation.last_level_cache_bytes},
          {"cold", rotation.is_cold()},
          {"why_not_cold", rotation.why_not_cold()}};
}

/// The least time by the machine's ceilings: of its data sheet, or of the day. Warm calls need not read memory.
double least_us(const Cost& cost, double operations_per_s, double bytes_per_s, TimingMode mode) {
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
    return least_us(cost, ceilings.rate(operations_per_s, match.contestant.numerics()), ceilings.bytes_per_s,
                    mode.mode);
  };
  measurement.floor_us = least(ceilings.peak_operations_per_s);
  measurement.sustained_us = least(ceilings.sustained_operations_per_s);
  measurement.samples =
      nlohmann::json{{"calls_per_sample", mode.calls_per_sample},   {"baseline_us", mode.baseline_us},
                     {"baseline_again_us", mode.baseline_again_us}, {"contestant_us", mode.contestant_us},
                     {"telemetry", telemetry_json(mode.telemetry)}, {"rotation", rotation_json(times.rotation)}}
          .dump();
  return measurement;
}

class TimedGate final : public Gate {
 public:
  [[nodiscard]] GateKind kind() const override { return GateKind::timed; }

  [[nodiscard]] GateResult judge(Match& match) const override {
    if (!match.suite.timed) {
      return {kind(), Outcome::skipped, fmt::format("the suite {} says timed = false", match.suite.name)};
    }
    const Ceilings& ceilings = match.rig.ceilings();
    for (const Problem& problem : match.suite.problems) {
      match.progress.begin(std::string(name(kind())), fmt::format("{} on {}", match.contestant.name(), label(problem)));
      match.timed.push_back({problem, time_problem(match, problem)});
      match.progress.end();
      const Times& times = match.timed.back().times;
      if (!times.clock_fault.empty()) {
        return {kind(), Outcome::not_judged, "the clock cannot be trusted: " + times.clock_fault};
      }
      for (const ModeTimes& mode : times.modes) {
        match.measurements.push_back(measurement_of(match, problem, times, mode));
      }
    }
    return {kind(), Outcome::passed, summary(match),
            TimedEvidence{std::string(match.rig.clock().name()), match.suite.distributions.front(),
                          match.timing.budget_s, ceilings}};
  }

 private:
  static std::string summary(const Match& match) {
    const auto measured = std::count_if(match.measurements.begin(), match.measurements.end(),
                                        [](const Measurement& measurement) { return measurement.rounds > 0; });
    std::string sentence = fmt::format("{} problems, {} of {} modes measured with the {}", match.timed.size(), measured,
                                       match.measurements.size(), match.rig.clock().name());
    for (const TimedProblem& timed : match.timed) {
      if (const std::string why = timed.times.rotation.why_not_cold(); !why.empty() && !match.timing.warm) {
        return sentence + "; the cold times are not cold: " + why;
      }
    }
    return sentence;
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
