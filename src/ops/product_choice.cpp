#include "ops/product_choice.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "ops/cuda_device_spec.hpp"
#include "ops/cuda_programs.hpp"
#include "ops/tensor_checks.hpp"
#include "ops/tuning.hpp"
#include "planner/choose_steady.hpp"
#include "thresher/error.hpp"

namespace thresher::ops {
namespace {

using strategies::PlannedCall;
using Strategies = strategies::Strategies<ProductProblem>;

Strategies strategies_for(const ProductProblem& problem, DeviceKind kind) {
  return strategies::gemm::strategies_of(strategies::gemm::product_of(problem), kind);
}

void add_once(std::vector<std::string>& sentences, const std::string& sentence) {
  if (std::find(sentences.begin(), sentences.end(), sentence) == sentences.end()) {
    sentences.push_back(sentence);
  }
}

[[noreturn]] void refuse_call(const ProductProblem& problem, const planner::Request& request, const DeviceSpec& device,
                              const std::vector<std::string>& infeasible_reasons) {
  const std::string strategy = request.strategy.empty() ? "no strategy" : "strategy " + request.strategy + " does not";
  throw Error(ErrorCode::unsupported,
              fmt::format("{} run{} {} with {}{}{} on {}: {}", strategy, request.strategy.empty() ? "s" : "",
                          name(problem.a), name(problem.b), request.knobs.empty() ? "" : " with ", request.knobs.text(),
                          device.name, fmt::join(infeasible_reasons, "; ")));
}

/// The first of two obstacles.
CallObstacle either(const CallObstacle& of_tensors, const CallObstacle& of_programs) {
  return [=](const PlannedCall& call) {
    std::string sentence = of_tensors ? of_tensors(call) : "";
    return sentence.empty() && of_programs ? of_programs(call) : sentence;
  };
}

PlannedCall choose_tuned(const Device& device, const ProductProblem& problem, const DualGemmOptions& options,
                         const CallObstacle& obstacle) {
  const DeviceSpec spec = spec_of(device);
  const bool is_dual = strategies::gemm::product_of(problem) == Product::dual_gemm;
  const planner::Request request = request_of(options);
  if (const auto tuned =
          is_dual && !request.steady ? tuned_options(device, problem.dual_gemm(), options) : std::nullopt) {
    try {
      return choose_product(problem, request_of(*tuned), device.kind(), spec, obstacle);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::unsupported && error.code() != ErrorCode::invalid_argument) {
        throw;
      }
    }
  }
  return choose_product(problem, request, device.kind(), spec, obstacle);
}

/// Whether two calls launch the same for the same rows. A step of a library or of the CPU depends on its planned rows.
bool launch_alike(const PlannedCall& a, const PlannedCall& b) {
  const auto is_launch = [](const strategies::Step& step) {
    return std::holds_alternative<strategies::KernelLaunch>(step);
  };
  return a.strategy == b.strategy && a.knobs == b.knobs && std::all_of(a.steps.begin(), a.steps.end(), is_launch);
}

/// The problem of a call of `rows` rows, without an extent of 0.
ProductProblem with_rows(ProductProblem problem, std::int64_t rows) {
  problem.rows = rows;
  problem.n = std::max<std::int64_t>(problem.n, 1);
  if (!problem.is_dense()) {
    const bool is_masked = problem.layout == strategies::gemm::ProductRows::masked;
    problem.tokens = std::max<std::int64_t>(problem.tokens, 1);
    problem.expected_rows = std::min(problem.expected_rows, rows * (is_masked ? problem.experts : 1));
  }
  return problem;
}

/// The sizes by which a choice is made that must not depend on the size: decoding counts as much as long prompts. Where
/// a token has rows of several experts, it is taken for eight.
std::vector<ProductProblem> steady_sizes(const ProductProblem& problem) {
  const bool has_choices = !problem.is_dense() && problem.layout != strategies::gemm::ProductRows::masked;
  std::vector<ProductProblem> sizes;
  for (const std::int64_t tokens : {8, 64, 512, 4096}) {
    ProductProblem& size = sizes.emplace_back(with_rows(problem, tokens * (has_choices ? 8 : 1)));
    size.tokens = problem.layout == strategies::gemm::ProductRows::gathered ? tokens : problem.tokens;
    size.expected_rows = 0;
  }
  return sizes;
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

void set_deterministic(const std::string& option, planner::Request& request) {
  if (!option.empty()) {
    set_from_option("deterministic", option, request.knobs);
  }
  const std::string* const asked = request.knobs.find("deterministic");
  if (asked == nullptr) {
    return;
  }
  if (*asked != "batch") {
    throw Error(ErrorCode::invalid_argument, fmt::format("deterministic is {}, expected batch or nothing", *asked));
  }
  request.steady = true;
  request.knobs.erase("deterministic");
}

planner::Request request_of(const DualGemmOptions& options) {
  planner::Request request{options.strategy, options.knobs};
  set_threads(options.threads, request.knobs);
  set_deterministic(options.deterministic, request);
  return request;
}

std::vector<std::string> strategy_names(Product product, const Device& device) {
  return planner::strategy_names<ProductProblem>(strategies::gemm::strategies_of(product, device.kind()));
}

std::string unsupported_reason(DeviceKind kind, const DeviceSpec& device, const ProductProblem& problem,
                               const DualGemmOptions& options) {
  return options.strategy.empty() ? ""
                                  : planner::named_strategy(strategies_for(problem, kind), options.strategy)
                                        .unsupported_reason(problem, device)
                                        .value_or("");
}

void check_knobs(const Device& device, const ProductProblem& problem, const DualGemmOptions& options) {
  (void)planner::named_strategy(strategies_for(problem, device.kind()), options.strategy)
      .infeasible_reasons(problem, request_of(options).knobs, spec_of(device));
}

std::string product_obstacle(const Device& device, const ProductProblem& problem, const DualGemmOptions& options) {
  if (std::string sentence = unsupported_reason(device.kind(), spec_of(device), problem, options); !sentence.empty()) {
    return sentence;
  }
  try {
    (void)choose_product(problem, request_of(options), device.kind(), spec_of(device), program_obstacle(device));
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

planner::Choices product_choices(const ProductProblem& problem, const planner::Request& request, DeviceKind kind,
                                 const DeviceSpec& device) {
  const Strategies all = strategies_for(problem, kind);
  if (request.steady) {
    return planner::choose_steady<ProductProblem>(all, problem, steady_sizes(problem), request, device);
  }
  return planner::choose<ProductProblem>(all, problem, request, device);
}

PlannedCall choose_product(const ProductProblem& problem, const planner::Request& request, DeviceKind kind,
                           const DeviceSpec& device, const CallObstacle& obstacle) {
  const Strategies all = strategies_for(problem, kind);
  const planner::Choices choices = product_choices(problem, request, kind, device);
  std::vector<std::string> infeasible_reasons;
  if (auto call = planner::first_without_obstacle<ProductProblem>(all, problem, choices, device, obstacle,
                                                                  infeasible_reasons)) {
    return *std::move(call);
  }
  for (const planner::RefusedStrategy& refused : choices.refused) {
    for (const std::string& sentence : refused.infeasible_reasons) {
      add_once(infeasible_reasons, sentence);
    }
  }
  refuse_call(problem, request, device, infeasible_reasons);
}

std::vector<std::int64_t> planned_rows(std::int64_t m) {
  std::vector<std::int64_t> rows;
  for (std::int64_t count = 4; count < m; count *= 2) {
    rows.push_back(count);
  }
  rows.push_back(m);
  return rows;
}

std::vector<PlannedRows> planned_calls(const Device& device, const ProductProblem& problem,
                                       const DualGemmOptions& options, const CallObstacle& obstacle,
                                       const CallChange& change) {
  std::vector<PlannedRows> calls;
  const CallObstacle shares_weights = [&](const PlannedCall& call) {
    if (!calls.empty() && call.packed_layout != calls.front().call.packed_layout) {
      return "strategy " + call.strategy + " reads weights that are packed otherwise";
    }
    return obstacle ? obstacle(call) : std::string();
  };
  const CallObstacle can_run = either(shares_weights, program_obstacle(device));
  const auto chosen = [&](const ProductProblem& sized) {
    PlannedCall call = choose_tuned(device, sized, options, can_run);
    return change ? change(std::move(call), sized) : call;
  };
  if (device.kind() == DeviceKind::cpu && strategies::gemm::product_of(problem) != Product::dual_gemm) {
    return {{problem.rows, chosen(problem)}};  // one function serves every number of rows
  }
  const std::vector<std::int64_t> rows = planned_rows(std::max<std::int64_t>(problem.rows, 1));
  for (auto count = rows.rbegin(); count != rows.rend(); ++count) {
    PlannedCall call = chosen(with_rows(problem, *count));
    if (calls.empty() || !launch_alike(calls.back().call, call)) {
      calls.push_back({*count, std::move(call)});
    }
  }
  std::reverse(calls.begin(), calls.end());
  return calls;
}

}  // namespace thresher::ops
