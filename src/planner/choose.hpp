#pragma once
/// The choice among an operation's strategies: a pure function that explains its result.
#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "planner/predict.hpp"
#include "strategies/strategy.hpp"
#include "thresher/error.hpp"

namespace thresher::planner {

/// The user's request; the planner chooses everything else.
struct Request {
  std::string strategy{};  ///< empty: any that is not by_name
  Knobs knobs{};           ///< kept in every choice
  bool steady = false;     ///< bits must not depend on the batch: for choose_steady (planner/choose_steady.hpp)
};

/// A possible launch; `planned` gives its call.
struct Choice {
  std::string strategy;
  Knobs knobs;  ///< all of them
  strategies::WorkModel work;
  std::optional<Prediction> prediction;  ///< empty for work that the predictor cannot model
  strategies::Role role = strategies::Role::competes;
};

/// A strategy that cannot run the request, and the reason: one sentence or more.
struct RefusedStrategy {
  std::string strategy;
  std::vector<std::string> infeasible_reasons;
};

struct Choices {
  std::vector<Choice> ranked;  ///< `plan` launches the first
  std::vector<RefusedStrategy> refused;
};

/// Throws Error(invalid_argument) naming the strategies there are.
[[noreturn]] void refuse_unknown_strategy(const std::string& name, const std::vector<std::string>& known);

template <class Problem>
[[nodiscard]] std::vector<std::string> strategy_names(strategies::Strategies<Problem> all) {
  std::vector<std::string> names;
  std::transform(all.begin(), all.end(), std::back_inserter(names),
                 [](const auto* one) { return std::string(one->name()); });
  return names;
}

/// The strategy of that name. Throws Error(invalid_argument) naming the strategies there are.
template <class Problem>
[[nodiscard]] const strategies::Strategy<Problem>& named_strategy(strategies::Strategies<Problem> all,
                                                                  const std::string& name) {
  if (const auto* const strategy = strategies::find_strategy<Problem>(all, name)) {
    return *strategy;
  }
  refuse_unknown_strategy(name, strategy_names<Problem>(all));
}

/// Throws Error(invalid_argument) with one strategy's reason to reject the knobs.
[[noreturn]] void refuse_knobs(const Knobs& knobs, const std::string& sentence);

/// Strategies that lead come before those that compete, and fallbacks last. Within each role the fastest prediction
/// comes first and choices without one last; equals keep their order.
void sort_choices(std::vector<Choice>& choices);

namespace detail {

template <class Problem>
bool is_superseded(strategies::Strategies<Problem> all, const strategies::Strategy<Problem>& strategy,
                   const std::type_identity_t<Problem>& problem, const DeviceSpec& device) {
  return std::any_of(all.begin(), all.end(), [&](const strategies::Strategy<Problem>* other) {
    return other->supersedes() == strategy.name() && !other->candidates(problem, {}, device).empty();
  });
}

/// A strategy's choice of these knobs, which it can run.
template <class Problem>
Choice choice_of(const strategies::Strategy<Problem>& strategy, const std::type_identity_t<Problem>& problem,
                 const Knobs& knobs, const DeviceSpec& device, const Calibration& calibration = {},
                 Clocks clocks = Clocks::burst) {
  Choice choice;
  choice.strategy = strategy.name();
  choice.knobs = knobs;
  choice.work = strategy.work(problem, knobs, device);
  choice.role = strategy.role(problem);
  if (!choice.work.parts.empty()) {
    choice.prediction = predict(choice.work, device, calibration, clocks);
  }
  return choice;
}

template <class Problem>
void add_choices(Choices& out, strategies::Strategies<Problem> all, const strategies::Strategy<Problem>& strategy,
                 const std::type_identity_t<Problem>& problem, const Request& request, const DeviceSpec& device,
                 const Calibration& calibration, Clocks clocks) {
  std::vector<Knobs> candidates;
  if (!is_superseded(all, strategy, problem, device)) {
    candidates = strategy.candidates(problem, request.knobs, device);
  }
  const bool is_asked_for = request.strategy == strategy.name();
  if (candidates.empty()) {
    std::vector<std::string> infeasible_reasons = strategy.infeasible_reasons(problem, request.knobs, device);
    if (!infeasible_reasons.empty() || !is_asked_for) {
      out.refused.push_back({std::string(strategy.name()), std::move(infeasible_reasons)});
      return;
    }
    candidates.push_back(
        strategy.plan(problem, request.knobs, device).knobs);  // not worth a prediction here, but it runs
  }
  for (const Knobs& knobs : candidates) {
    out.ranked.push_back(choice_of(strategy, problem, knobs, device, calibration, clocks));
  }
}

}  // namespace detail

/// `act(strategy)` for every strategy that is not by_name. Where it throws an Error the strategy is refused, and so is
/// the request where all are: none takes the knobs.
template <class Problem, class Act>
void for_each_taking(strategies::Strategies<Problem> all, const std::type_identity_t<Problem>& problem,
                     const Knobs& knobs, std::vector<RefusedStrategy>& refused, const Act& act) {
  bool takes_knobs = false;
  for (const strategies::Strategy<Problem>* const strategy : all) {
    if (strategy->role(problem) == strategies::Role::by_name) {
      continue;
    }
    try {
      act(*strategy);
      takes_knobs = true;
    } catch (const Error& error) {  // a knob of another strategy
      refused.push_back({std::string(strategy->name()), {error.what()}});
    }
  }
  if (!takes_knobs && !refused.empty()) {
    refuse_knobs(knobs, refused.front().infeasible_reasons.front());
  }
}

/// Every strategy's candidates for `problem` on `device`, ranked. Throws Error(invalid_argument) for an unknown
/// strategy. Throws too for knobs that the requested strategy, or without one every strategy, does not accept.
template <class Problem>
[[nodiscard]] Choices choose(strategies::Strategies<Problem> all, const std::type_identity_t<Problem>& problem,
                             const Request& request, const DeviceSpec& device, const Calibration& calibration = {},
                             Clocks clocks = Clocks::burst) {
  Choices out;
  if (!request.strategy.empty()) {
    const strategies::Strategy<Problem>& strategy = named_strategy<Problem>(all, request.strategy);
    detail::add_choices(out, all, strategy, problem, request, device, calibration, clocks);
  } else {
    for_each_taking<Problem>(all, problem, request.knobs, out.refused,
                             [&](const strategies::Strategy<Problem>& strategy) {
                               detail::add_choices(out, all, strategy, problem, request, device, calibration, clocks);
                             });
  }
  sort_choices(out.ranked);
  return out;
}

/// Why a call cannot run with the tensors or programs that are there, in one sentence; empty when it can.
using CallObstacle = std::function<std::string(const strategies::PlannedCall&)>;

/// The call of a choice that `choose` returned for the same arguments.
template <class Problem>
[[nodiscard]] strategies::PlannedCall planned(strategies::Strategies<Problem> all,
                                              const std::type_identity_t<Problem>& problem, const Choice& choice,
                                              const DeviceSpec& device) {
  return strategies::find_strategy<Problem>(all, choice.strategy)->plan(problem, choice.knobs, device);
}

/// The call of the first choice without an obstacle. Without one it is empty, and each obstacle is once in `sentences`.
template <class Problem>
[[nodiscard]] std::optional<strategies::PlannedCall> first_without_obstacle(
    strategies::Strategies<Problem> all, const std::type_identity_t<Problem>& problem, const Choices& choices,
    const DeviceSpec& device, const CallObstacle& obstacle, std::vector<std::string>& sentences) {
  for (const Choice& choice : choices.ranked) {
    strategies::PlannedCall call = planned<Problem>(all, problem, choice, device);
    const std::string sentence = obstacle ? obstacle(call) : "";
    if (sentence.empty()) {
      return call;
    }
    if (std::find(sentences.begin(), sentences.end(), sentence) == sentences.end()) {
      sentences.push_back(sentence);
    }
  }
  return std::nullopt;
}

}  // namespace thresher::planner
