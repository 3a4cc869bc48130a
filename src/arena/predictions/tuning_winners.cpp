#include "arena/predictions/tuning_winners.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "arena/operation/operation.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

constexpr TimingMode deciding_mode = TimingMode::cold_burst;

struct Timed {
  ContestantSpec contestant;
  LaunchedChoice launched;
  Estimate us;
};

/// Contestants that passed, were timed on the problem, and have a launch that `plan` can choose.
std::vector<Timed> timed_on(const RunRecord& run, const std::string& suite, const Problem& problem,
                            const TunedChoices& choices, const DeviceSpec& spec) {
  std::vector<Timed> found;
  for (const Entry& entry : run.entries) {
    if (entry.suite != suite || first_failure(entry.gates) != nullptr) {
      continue;
    }
    const ContestantSpec contestant = parse_label(entry.contestant);
    const auto launched = choices.launched(problem, contestant, spec);
    for (const Measurement& measurement : entry.measurements) {
      if (launched && measurement.problem == label(problem) && measurement.mode == deciding_mode &&
          measurement.rounds >= min_rounds) {
        found.push_back({contestant, *launched, measurement.contestant_us});
      }
    }
  }
  return found;
}

std::string enter(const Problem& problem, const std::vector<Timed>& timed, const TunedChoices& choices,
                  const std::string& device, const DeviceSpec& spec, ops::Tuning& tuning) {
  const Operation& operation = problem.operation();
  const auto default_choice = choices.launched(problem, {std::string(operation.name()), ""}, spec);
  const auto is_default = [&](const Timed& one) { return one.launched == default_choice; };
  const auto by_time = [](const Timed& a, const Timed& b) { return a.us.value < b.us.value; };
  const auto standard = std::find_if(timed.begin(), timed.end(), is_default);
  if (standard == timed.end()) {
    return "";
  }
  const auto best = std::min_element(timed.begin(), timed.end(), by_time);
  const bool wins = !is_default(*best) && best->us.high * same_factor < standard->us.low;
  if (!wins) {
    choices.forget(tuning, device, problem);
    return "";
  }
  choices.remember(tuning, device, problem, best->contestant, best->us.value, standard->us.value);
  const PlanRequest request = operation.plan_request(best->contestant);
  return fmt::format("{}: {}{}{} in {:.1f} us instead of {:.1f}", label(problem), request.strategy,
                     request.knobs.empty() ? "" : " ", request.knobs, best->us.value, standard->us.value);
}

}  // namespace

void check_tuned(std::span<const Suite> suites) {
  for (const Suite& suite : suites) {
    const Operation& operation = suite.problems.front().operation();
    if (operation.tuned_choices() == nullptr) {
      throw Error(ErrorCode::unsupported,
                  fmt::format("--tune: plan keeps no measured choices of {}: leave suite {} out", operation.name(),
                              suite.name));
    }
  }
}

std::vector<std::string> enter_winners(const RunRecord& run, std::span<const Suite> suites, const std::string& device,
                                       const DeviceSpec& spec, ops::Tuning& tuning) {
  std::vector<std::string> sentences;
  for (const Suite& suite : suites) {
    for (const Problem& problem : suite.problems) {
      const TunedChoices* const choices = problem.operation().tuned_choices();
      if (choices == nullptr) {
        continue;
      }
      const std::vector<Timed> timed = timed_on(run, suite.name, problem, *choices, spec);
      const std::string sentence = enter(problem, timed, *choices, device, spec, tuning);
      if (!sentence.empty()) {
        sentences.push_back(sentence);
      }
    }
  }
  return sentences;
}

}  // namespace thresher::arena
