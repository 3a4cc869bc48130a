#include "arena/predictions/tuning_winners.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "arena/dual_gemm/options.hpp"
#include "arena/dual_gemm/task.hpp"
#include "ops/forecast.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

constexpr TimingMode deciding_mode = TimingMode::cold_burst;

struct Timed {
  DualGemmOptions options;
  std::pair<std::string, Knobs> config;  ///< what `options` launch
  Estimate us;
};

/// Nothing for a contestant whose knobs are not the planner's, or whose numerics must be asked for.
std::optional<DualGemmOptions> options_of(const std::string& contestant) {
  try {
    const DualGemmOptions options = plan_options(parse_label(contestant));
    const std::string* const numerics = options.knobs.find("numerics");
    const bool is_exact = numerics == nullptr || *numerics == name(Numerics::exact);
    return is_exact ? std::optional(options) : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// The strategy that runs with all its knobs; nothing for what `plan` cannot launch, as a kernel that a user brought.
std::optional<std::pair<std::string, Knobs>> config_of(const DualGemmProblem& problem, const DualGemmOptions& options,
                                                       const DeviceSpec& spec) {
  try {
    const strategies::PlannedCall call = ops::planned_call(problem, options, spec);
    return std::pair(call.strategy, call.knobs);
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// Contestants that passed, were timed on the problem and can be launched by `plan`.
std::vector<Timed> timed_on(const RunRecord& run, const std::string& suite, const Problem& problem,
                            const DeviceSpec& spec) {
  std::vector<Timed> found;
  for (const Entry& entry : run.entries) {
    const auto options = options_of(entry.contestant);
    const auto config = options ? config_of(dual_gemm(problem), *options, spec) : std::nullopt;
    if (!config || entry.suite != suite || first_failure(entry.gates) != nullptr) {
      continue;
    }
    for (const Measurement& measurement : entry.measurements) {
      if (measurement.problem == label(problem) && measurement.mode == deciding_mode &&
          measurement.rounds >= min_rounds) {
        found.push_back({*options, *config, measurement.contestant_us});
      }
    }
  }
  return found;
}

std::string enter(const Problem& problem, const std::vector<Timed>& timed, const std::string& device,
                  const DeviceSpec& spec, ops::Tuning& tuning) {
  const auto default_config = config_of(dual_gemm(problem), {}, spec);
  const auto is_default = [&](const Timed& one) { return one.config == default_config; };
  const auto by_time = [](const Timed& a, const Timed& b) { return a.us.value < b.us.value; };
  const auto standard = std::find_if(timed.begin(), timed.end(), is_default);
  if (standard == timed.end()) {
    return "";
  }
  const auto best = std::min_element(timed.begin(), timed.end(), by_time);
  const bool wins = !is_default(*best) && best->us.high * same_factor < standard->us.low;
  if (!wins) {
    tuning.forget(device, dual_gemm(problem));
    return "";
  }
  const std::string knobs = best->options.knobs.text();
  tuning.set(device, dual_gemm(problem), {best->options.strategy, knobs, best->us.value, standard->us.value});
  return fmt::format("{}: {}{}{} in {:.1f} us instead of {:.1f}", label(problem), best->options.strategy,
                     knobs.empty() ? "" : " ", knobs, best->us.value, standard->us.value);
}

}  // namespace

std::vector<std::string> enter_winners(const RunRecord& run, std::span<const Suite> suites, const std::string& device,
                                       const DeviceSpec& spec, ops::Tuning& tuning) {
  std::vector<std::string> sentences;
  for (const Suite& suite : suites) {
    for (const Problem& problem : suite.problems) {
      if (&problem.operation() != &dual_gemm_operation()) {  // the one whose choices are kept
        continue;
      }
      const std::string sentence = enter(problem, timed_on(run, suite.name, problem, spec), device, spec, tuning);
      if (!sentence.empty()) {
        sentences.push_back(sentence);
      }
    }
  }
  return sentences;
}

}  // namespace thresher::arena
