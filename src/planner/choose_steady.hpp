#pragma once
/// The choice for plans whose bits must not depend on the batch: one way to sum serves every size.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
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
  double log_time = 0;  ///< of all choices that sum alike: what is least for each size, added up; 0 without predictions
};

/// Candidates by what says how they sum.
using AlikeKnobs = std::map<Knobs, std::vector<Knobs>>;

/// The strategy's candidates for any of `sizes`, each once, without those whose bits depend on the batch.
template <class Problem>
AlikeKnobs steady_candidates(const strategies::Strategy<Problem>& strategy, std::span<const Problem> sizes,
                             const Knobs& knobs, const DeviceSpec& device) {
  AlikeKnobs found;
  for (const Problem& size : sizes) {
    for (const Knobs& candidate : strategy.candidates(size, knobs, device)) {
      if (const std::optional<Knobs> sums = strategy.sums(size, candidate, device)) {
        std::vector<Knobs>& alike = found[*sums];
        if (std::find(alike.begin(), alike.end(), candidate) == alike.end()) {
          alike.push_back(candidate);
        }
      }
    }
  }
  return found;
}

/// The choice for `problem`; empty if it cannot run that.
template <class Problem>
std::optional<Choice> feasible_choice(const strategies::Strategy<Problem>& strategy, const Problem& problem,
                                      const Knobs& knobs, const DeviceSpec& device) {
  if (!strategy.infeasible_reasons(problem, knobs, device).empty()) {
    return std::nullopt;
  }
  return choice_of(strategy, problem, knobs, device);
}

/// SteadyChoice::log_time of candidates that sum alike; empty if none of them runs one of the sizes.
template <class Problem>
std::optional<double> log_time(const strategies::Strategy<Problem>& strategy, std::span<const Problem> sizes,
                               const std::vector<Knobs>& alike, const DeviceSpec& device) {
  double sum = 0;
  for (const Problem& size : sizes) {
    std::optional<double> least;
    for (const Knobs& knobs : alike) {
      if (const auto choice = feasible_choice<Problem>(strategy, size, knobs, device)) {
        const double own = choice->prediction ? std::log(choice->prediction->us()) : 0;
        least = least ? std::min(*least, own) : own;
      }
    }
    if (!least) {
      return std::nullopt;
    }
    sum += *least;
  }
  return sum;
}

/// Adds a strategy's choices, or why there are none. Throws Error(invalid_argument) for knobs that it does not take.
template <class Problem>
void add_steady_choices(const strategies::Strategy<Problem>& strategy, const Problem& problem,
                        std::span<const Problem> sizes, const Knobs& asked, const DeviceSpec& device,
                        std::vector<SteadyChoice>& found, std::vector<RefusedStrategy>& refused) {
  std::vector<std::string> reasons = strategy.infeasible_reasons(problem, asked, device);
  const std::optional<Knobs> steady = strategy.steady_knobs(problem);
  const std::size_t found_before = found.size();
  if (steady) {
    const Knobs knobs = with_steady_knobs(asked, *steady);
    for (const auto& [sums, alike] : steady_candidates<Problem>(strategy, sizes, knobs, device)) {
      const std::optional<double> time = log_time<Problem>(strategy, sizes, alike, device);
      for (const Knobs& candidate : time ? alike : std::vector<Knobs>{}) {
        if (auto choice = feasible_choice<Problem>(strategy, problem, candidate, device)) {
          found.push_back({*std::move(choice), *time});
        }
      }
    }
  }
  if (found.size() == found_before) {
    reasons.push_back(not_steady(strategy.name()));
    refused.push_back({std::string(strategy.name()), std::move(reasons)});
  }
}

/// Choices that sum alike stay together, the fastest for the problem first.
inline bool comes_before(const SteadyChoice& a, const SteadyChoice& b) {
  const auto place = [](const SteadyChoice& one) {
    return std::tuple(one.choice.role, one.log_time, one.choice.prediction ? one.choice.prediction->us() : 0);
  };
  return place(a) < place(b);
}

}  // namespace detail

/// As `choose`, for strategies whose bits do not depend on the batch (Strategy::steady_knobs, Strategy::sums). How the
/// first choice sums is the fastest by the geometric mean over `sizes`: so problems with the same sizes have the same
/// bits. Among choices that sum alike it is the fastest for `problem`.
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
  std::stable_sort(found.begin(), found.end(), detail::comes_before);
  for (detail::SteadyChoice& steady : found) {
    out.ranked.push_back(std::move(steady.choice));
  }
  return out;
}

}  // namespace thresher::planner
