#pragma once
/// Which strategy runs a problem, with which knobs, and which for fewer rows than a plan was made for: the same for
/// every operation whose calls bring rows of tokens.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/device_spec.hpp"
#include "planner/choose.hpp"
#include "strategies/planned_call.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::ops {

/// Why a call cannot run with the tensors that are there, in one sentence; empty when it can.
using TensorObstacle = std::function<std::string(const strategies::PlannedCall&)>;

/// What the knob `numerics` says; exact where it is left out.
[[nodiscard]] Numerics numerics_of(const Knobs& knobs);
/// Sets the knob where nobody did; every strategy is exact by itself.
void ask_for(Numerics numerics, Knobs& knobs);

/// Sets a knob that a member of the options stands for. Throws Error(invalid_argument) where the knobs say otherwise.
void set_from_option(const std::string& knob, const std::string& value, Knobs& knobs);
/// The same of `threads`, 0 for no wish.
void set_threads(int threads, Knobs& knobs);

/// `options` in the words of strategies.
[[nodiscard]] planner::Request request_of(const DualGemmOptions& options);

/// One of a plan's calls, and for how many rows.
struct PlannedRows {
  std::int64_t rows = 0;
  strategies::PlannedCall call;
};

/// Row counts that a plan for up to `m` rows is made for, `m` the last: a call takes the first that it fits.
[[nodiscard]] std::vector<std::int64_t> planned_rows(std::int64_t m);

/// A call for each number of rows up to `most`, all for the same packed weights; those that launch alike are one. The
/// rows ascend. `choose` makes the call for so many rows that has no obstacle.
[[nodiscard]] std::vector<PlannedRows> calls_by_rows(
    std::int64_t most, const TensorObstacle& obstacle,
    const std::function<strategies::PlannedCall(std::int64_t rows, const TensorObstacle&)>& choose);

/// The one of that name. Throws Error(invalid_argument) naming the strategies there are.
template <class Problem>
const strategies::Strategy<Problem>& named_strategy(strategies::Strategies<Problem> all, const std::string& name) {
  if (const auto* strategy = strategies::find_strategy<Problem>(all, name)) {
    return *strategy;
  }
  std::vector<std::string> known;
  std::transform(all.begin(), all.end(), std::back_inserter(known),
                 [](const auto* one) { return std::string(one->name()); });
  planner::refuse_unknown_strategy(name, known);
}

namespace detail {
void add_once(std::vector<std::string>& sentences, const std::string& sentence);
[[noreturn]] void refuse_call(Format a, Format b, const planner::Request& request, const DeviceSpec& device,
                              const std::vector<std::string>& infeasible_reasons);
}  // namespace detail

/// The candidate that is predicted to be fastest among those without an obstacle: of the strategy that is asked for, or
/// of all that compete, or else of those that are there for what no other takes. Throws Error(unsupported) with what is
/// in the way, Error(invalid_argument) for knobs that do not exist.
template <class Problem>
strategies::PlannedCall choose_call(strategies::Strategies<Problem> all, const std::type_identity_t<Problem>& problem,
                                    const planner::Request& request, const DeviceSpec& device,
                                    const TensorObstacle& obstacle = {}) {
  const planner::Choices choices = planner::choose<Problem>(all, problem, request, device);
  std::vector<std::string> infeasible_reasons;
  for (const planner::Choice& choice : choices.ranked) {
    strategies::PlannedCall call = planner::planned<Problem>(all, problem, choice, device);
    const std::string sentence = obstacle ? obstacle(call) : "";
    if (sentence.empty()) {
      return call;
    }
    detail::add_once(infeasible_reasons, sentence);
  }
  for (const planner::RefusedStrategy& refused : choices.refused) {
    for (const std::string& sentence : refused.infeasible_reasons) {
      detail::add_once(infeasible_reasons, sentence);
    }
  }
  detail::refuse_call(problem.a, problem.b, request, device, infeasible_reasons);
}

}  // namespace thresher::ops
