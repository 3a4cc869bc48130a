#include "ops/call_choice.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/tensor_checks.hpp"
#include "thresher/error.hpp"

namespace thresher::ops {
namespace {

using strategies::PlannedCall;

/// Two calls that launch the same for the same rows; what a library multiplies, and what a function of the CPU does,
/// depends on the rows that it was planned for.
bool launch_alike(const PlannedCall& a, const PlannedCall& b) {
  const auto is_launch = [](const strategies::Step& step) {
    return std::holds_alternative<strategies::KernelLaunch>(step);
  };
  return a.strategy == b.strategy && a.knobs == b.knobs && std::all_of(a.steps.begin(), a.steps.end(), is_launch);
}

}  // namespace

Numerics numerics_of(const Knobs& knobs) {
  const std::string* const asked = knobs.find("numerics");
  return asked == nullptr ? Numerics::exact : parse_numerics(*asked).value_or(Numerics::exact);
}

void ask_for(Numerics numerics, Knobs& knobs) {
  if (numerics != Numerics::exact && knobs.find("numerics") == nullptr) {
    knobs.set("numerics", std::string(name(numerics)));
  }
}

void set_from_option(const std::string& knob, const std::string& value, Knobs& knobs) {
  if (const std::string* const given = knobs.find(knob); given != nullptr && *given != value) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("options.{} is {}, but the knob {} is {}: give one of them, or both alike", knob, value,
                            knob, *given));
  }
  knobs.set(knob, value);
}

void set_threads(int threads, Knobs& knobs) {
  check_threads(threads);
  if (threads > 0) {
    set_from_option("threads", std::to_string(threads), knobs);
  }
}

planner::Request request_of(const DualGemmOptions& options) {
  planner::Request request{options.strategy, options.knobs};
  set_threads(options.threads, request.knobs);
  return request;
}

std::vector<std::int64_t> planned_rows(std::int64_t m) {
  std::vector<std::int64_t> rows;
  for (std::int64_t count = 8; count < m; count *= 2) {
    rows.push_back(count);
  }
  rows.push_back(m);
  return rows;
}

std::vector<PlannedRows> calls_by_rows(
    std::int64_t most, const TensorObstacle& obstacle,
    const std::function<PlannedCall(std::int64_t rows, const TensorObstacle&)>& choose) {
  std::vector<PlannedRows> calls;
  const TensorObstacle shares_weights = [&](const PlannedCall& call) {
    if (!calls.empty() && call.packed_layout != calls.front().call.packed_layout) {
      return "strategy " + call.strategy + " reads weights that are packed otherwise";
    }
    return obstacle ? obstacle(call) : std::string();
  };
  const std::vector<std::int64_t> rows = planned_rows(std::max<std::int64_t>(most, 1));
  for (auto count = rows.rbegin(); count != rows.rend(); ++count) {
    PlannedCall call = choose(*count, shares_weights);
    if (calls.empty() || !launch_alike(calls.back().call, call)) {
      calls.push_back({*count, std::move(call)});
    }
  }
  std::reverse(calls.begin(), calls.end());
  return calls;
}

void detail::add_once(std::vector<std::string>& sentences, const std::string& sentence) {
  if (std::find(sentences.begin(), sentences.end(), sentence) == sentences.end()) {
    sentences.push_back(sentence);
  }
}

void detail::refuse_call(Format a, Format b, const planner::Request& request, const DeviceSpec& device,
                         const std::vector<std::string>& infeasible_reasons) {
  const std::string strategy = request.strategy.empty() ? "no strategy" : "strategy " + request.strategy + " does not";
  throw Error(ErrorCode::unsupported,
              fmt::format("{} run{} {} with {}{}{} on {}: {}", strategy, request.strategy.empty() ? "s" : "", name(a),
                          name(b), request.knobs.empty() ? "" : " with ", request.knobs.text(), device.name,
                          fmt::join(infeasible_reasons, "; ")));
}

}  // namespace thresher::ops
