#pragma once
/// The choice for plans whose bits must not depend on the batch: one strategy with one set of knobs serves every size.
#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "planner/choose.hpp"

namespace thresher::planner {

/// `knobs` with those that a strategy needs. Throws Error(invalid_argument) where `knobs` say otherwise.
[[nodiscard]] Knobs with_steady_knobs(const Knobs& knobs, const Knobs& steady);
/// Why a strategy is refused that has no such knobs.
[[nodiscard]] std::string not_steady(std::string_view strategy);

namespace detail {

struct SteadyChoice {
  Choice choice{};
  double log_time = 0;  ///< the sum over all sizes; 0 without predictions
};

/// Adds the strategy's candidates for any of `sizes`, each once and without its times.
template <class Problem>
void add_candidates(const strategies::Strategy<Problem>& strategy, std::span<const Problem> sizes, const Knobs& knobs,
                    const DeviceSpec& device, std::vector<Knobs>& out) {
  for (const Problem& size : sizes) {
    for (const Knobs& candidate : strategy.candidates(size, knobs, device)) {
      if (std::find(out.begin(), out.end(), candidate) == out.end()) {
        out.push_back(candidate);
      }
    }
  }
}

/// The candidate with its times; empty if it is not steady, or cannot run one of the sizes or `problem`.
template <class Problem>
std::optional<SteadyChoice> timed(const strategies::Strategy<Problem>& strategy, const Problem& problem,
                                  std::span<const Problem> sizes, const Knobs& knobs, const DeviceSpec& device) {
  if (!strategy.infeasible_reasons(problem, knobs, device).empty() || !strategy.is_steady(problem, knobs, device)) {
    return std::nullopt;
  }
  const auto prediction_of = [&](const strategies::WorkModel& work) {
    return work.parts.empty() ? std::nullopt : std::optional(predict(work, device));
  };
  SteadyChoice found;
  found.choice.strategy = strategy.name();
  found.choice.knobs = knobs;
  found.choice.role = strategy.role(sizes.front());
  found.choice.work = strategy.work(problem, knobs, device);
  found.choice.prediction = prediction_of(found.choice.work);
  for (const Problem& size : sizes) {
    if (!strategy.infeasible_reasons(size, knobs, device).empty()) {
      return std::nullopt;
    }
    if (const std::optional<Prediction> own = prediction_of(strategy.work(size, knobs, device))) {
      found.log_time += std::log(own->us());
    }
  }
  return found;
}

/// Adds a strategy's choices, or why there are none. Throws Error(invalid_argument) for knobs that it does not take.
template <class Problem>
void add_steady_choices(const strategies::Strategy<Problem>& strategy, const Problem& problem,
                        std::span<const Problem> sizes, const Knobs& asked, const DeviceSpec& device,
                        std::vector<SteadyChoice>& found, std::vector<RefusedStrategy>& refused) {
  std::vector<std::string> reasons = strategy.infeasible_reasons(problem, asked, device);
  const std::optional<Knobs> steady = strategy.steady_knobs(problem);
  if (!steady) {
    refused.push_back({std::string(strategy.name()), {not_steady(strategy.name())}});
    return;
  }
  const Knobs knobs = with_steady_knobs(asked, *steady);
  std::vector<Knobs> candidates;
  add_candidates<Problem>(strategy, sizes, knobs, device, candidates);
  const std::size_t found_before = found.size();
  for (const Knobs& candidate : candidates) {
    if (auto choice = timed<Problem>(strategy, problem, sizes, candidate, device)) {
      found.push_back(*std::move(choice));
    }
  }
  if (found.size() == found_before) {
    reasons.push_back(not_steady(strategy.name()));
    refused.push_back({std::string(strategy.name()), std::move(reasons)});
  }
}

}  // namespace detail

/// As `choose`, for strategies whose bits do not depend on the batch (Strategy::steady_knobs). The first choice is the
/// fastest by the geometric mean over `sizes`, so that it is the same for every problem with these sizes. Predictions
/// in the result are of `problem`.
template <class Problem>
[[nodiscard]] Choices choose_steady(strategies::Strategies<Problem> all, const std::type_identity_t<Problem>& problem,
                                    std::span<const std::type_identity_t<Problem>> sizes, const Request& request,
                                    const DeviceSpec& device) {
  Choices out;
  std::vector<detail::SteadyChoice> found;
  const auto add = [&](const strategies::Strategy<Problem>& strategy) {
    detail::add_steady_choices<Problem>(strategy, problem, sizes, request.knobs, device, found, out.refused);
  };
  if (!request.strategy.empty()) {
    add(named_strategy<Problem>(all, request.strategy));
  } else {
    for_each_taking<Problem>(all, problem, request.knobs, out.refused, add);
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return std::pair(a.choice.role, a.log_time) < std::pair(b.choice.role, b.log_time);
  });
  for (detail::SteadyChoice& steady : found) {
    out.ranked.push_back(std::move(steady.choice));
  }
  return out;
}

}  // namespace thresher::planner
