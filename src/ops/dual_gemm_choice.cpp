#include "ops/dual_gemm_choice.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ops/cuda_device_spec.hpp"
#include "ops/tuning.hpp"
#include "strategies/dual_gemm/registry.hpp"
#include "thresher/error.hpp"

namespace thresher::ops {
namespace {

using strategies::PlannedCall;
using Strategy = strategies::Strategy<DualGemmProblem>;

[[noreturn]] void refuse(const DualGemmProblem& problem, const DualGemmRequest& request, const DeviceSpec& device,
                         const std::vector<std::string>& obstacles) {
  const std::string strategy = request.strategy.empty() ? "no strategy" : "strategy " + request.strategy + " does not";
  throw Error(ErrorCode::unsupported,
              fmt::format("{} run{} {} with {}{}{} on {}: {}", strategy, request.strategy.empty() ? "s" : "",
                          name(problem.a), name(problem.b), request.knobs.empty() ? "" : " with ", request.knobs.text(),
                          device.name, fmt::join(obstacles, "; ")));
}

const Strategy& named(DeviceKind kind, const std::string& name) {
  const auto all = strategies::dual_gemm::strategies_of(kind);
  if (const Strategy* strategy = strategies::find_strategy<DualGemmProblem>(all, name)) {
    return *strategy;
  }
  std::vector<std::string_view> names;
  for (const Strategy* const strategy : all) {
    names.push_back(strategy->name());
  }
  throw Error(ErrorCode::invalid_argument,
              fmt::format("there is no dual-GEMM strategy '{}' on this device, expected one of {}", name,
                          fmt::join(names, ", ")));
}

void add_once(std::vector<std::string>& sentences, const std::string& sentence) {
  if (std::find(sentences.begin(), sentences.end(), sentence) == sentences.end()) {
    sentences.push_back(sentence);
  }
}

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

DualGemmRequest request_of(const DualGemmOptions& options) {
  DualGemmRequest request{options.strategy, options.knobs};
  if (options.threads > 0) {
    request.knobs.set("threads", std::to_string(options.threads));
  }
  return request;
}

std::string dual_gemm_format_obstacle(DeviceKind kind, const DeviceSpec& device, const DualGemmProblem& problem,
                                      const DualGemmOptions& options) {
  return options.strategy.empty() ? "" : named(kind, options.strategy).not_made_for(problem, device).value_or("");
}

std::string dual_gemm_format_obstacle(const Device& device, const DualGemmProblem& problem,
                                      const DualGemmOptions& options) {
  return dual_gemm_format_obstacle(device.kind(), spec_of(device), problem, options);
}

void check_dual_gemm_knobs(const Device& device, const DualGemmProblem& problem, const DualGemmOptions& options) {
  (void)named(device.kind(), options.strategy).obstacles(problem, request_of(options).knobs, spec_of(device));
}

std::string dual_gemm_obstacle(const Device& device, const DualGemmProblem& problem, const DualGemmOptions& options) {
  if (std::string sentence = dual_gemm_format_obstacle(device, problem, options); !sentence.empty()) {
    return sentence;
  }
  try {
    (void)choose_dual_gemm(problem, request_of(options), device.kind(), spec_of(device));
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

PlannedCall choose_dual_gemm(const DualGemmProblem& problem, const DualGemmRequest& request, DeviceKind kind,
                             const DeviceSpec& device, const TensorObstacle& obstacle) {
  const auto all = strategies::dual_gemm::strategies_of(kind);
  const planner::Choices choices = planner::choose<DualGemmProblem>(all, problem, request, device);
  std::vector<std::string> obstacles;
  for (const planner::Choice& choice : choices.ranked) {
    PlannedCall call = planner::planned<DualGemmProblem>(all, problem, choice, device);
    const std::string sentence = obstacle ? obstacle(call) : "";
    if (sentence.empty()) {
      return call;
    }
    add_once(obstacles, sentence);
  }
  for (const planner::RefusedStrategy& refused : choices.refused) {
    for (const std::string& sentence : refused.obstacles) {
      add_once(obstacles, sentence);
    }
  }
  refuse(problem, request, device, obstacles);
}

PlannedCall choose_tuned(const Device& device, const DualGemmProblem& problem, const DualGemmOptions& options,
                         const TensorObstacle& obstacle) {
  const DeviceSpec spec = spec_of(device);
  if (const auto tuned = tuned_options(device, problem, options)) {
    try {
      return choose_dual_gemm(problem, request_of(*tuned), device.kind(), spec, obstacle);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::unsupported && error.code() != ErrorCode::invalid_argument) {
        throw;
      }
    }
  }
  return choose_dual_gemm(problem, request_of(options), device.kind(), spec, obstacle);
}

std::vector<std::int64_t> planned_rows(std::int64_t m) {
  std::vector<std::int64_t> rows;
  for (std::int64_t count = 8; count < m; count *= 2) {
    rows.push_back(count);
  }
  rows.push_back(m);
  return rows;
}

std::vector<PlannedRows> planned_calls(const Device& device, const DualGemmProblem& problem,
                                       const DualGemmOptions& options, const TensorObstacle& obstacle) {
  std::vector<PlannedRows> calls;
  const TensorObstacle shares_weights = [&](const PlannedCall& call) {
    if (!calls.empty() && call.packed_layout != calls.front().call.packed_layout) {
      return "strategy " + call.strategy + " reads weights that are packed otherwise";
    }
    return obstacle ? obstacle(call) : std::string();
  };
  DualGemmProblem rung = problem;
  rung.n = std::max<std::int64_t>(problem.n, 1);
  const std::vector<std::int64_t> rows = planned_rows(std::max<std::int64_t>(problem.m, 1));
  for (auto count = rows.rbegin(); count != rows.rend(); ++count) {
    rung.m = *count;
    PlannedCall call = choose_tuned(device, rung, options, shares_weights);
    if (calls.empty() || !launch_alike(calls.back().call, call)) {
      calls.push_back({*count, std::move(call)});
    }
  }
  std::reverse(calls.begin(), calls.end());
  return calls;
}

}  // namespace thresher::ops
