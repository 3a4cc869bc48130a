#include "ops/dual_gemm_choice.hpp"

#include <algorithm>

#include "ops/cuda_device_spec.hpp"
#include "ops/tuning.hpp"
#include "strategies/gemm/registry.hpp"
#include "thresher/error.hpp"

namespace thresher::ops {
namespace {

using strategies::PlannedCall;
using strategies::gemm::Product;
using Strategies = strategies::Strategies<strategies::gemm::ProductProblem>;

Strategies all_of(DeviceKind kind) { return strategies::gemm::strategies_of(Product::dual_gemm, kind); }

}  // namespace

std::string dual_gemm_format_obstacle(DeviceKind kind, const DeviceSpec& device, const DualGemmProblem& problem,
                                      const DualGemmOptions& options) {
  return options.strategy.empty()
             ? ""
             : named_strategy(all_of(kind), options.strategy).unsupported_reason(problem, device).value_or("");
}

std::string dual_gemm_format_obstacle(const Device& device, const DualGemmProblem& problem,
                                      const DualGemmOptions& options) {
  return dual_gemm_format_obstacle(device.kind(), spec_of(device), problem, options);
}

void check_dual_gemm_knobs(const Device& device, const DualGemmProblem& problem, const DualGemmOptions& options) {
  (void)named_strategy(all_of(device.kind()), options.strategy)
      .infeasible_reasons(problem, request_of(options).knobs, spec_of(device));
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
  return choose_call(all_of(kind), problem, request, device, obstacle);
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

std::vector<PlannedRows> planned_calls(const Device& device, const DualGemmProblem& problem,
                                       const DualGemmOptions& options, const TensorObstacle& obstacle) {
  DualGemmProblem sized = problem;
  sized.n = std::max<std::int64_t>(problem.n, 1);
  return calls_by_rows(problem.m, obstacle, [&](std::int64_t rows, const TensorObstacle& shares_weights) {
    sized.m = rows;
    return choose_tuned(device, sized, options, shares_weights);
  });
}

}  // namespace thresher::ops
