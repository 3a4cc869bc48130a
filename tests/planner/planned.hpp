#pragma once
/// What the library's own strategies plan, for the planner's tests.
#include <string>
#include <string_view>

#include "planner/predict.hpp"
#include "strategies/gemm/registry.hpp"

namespace thresher::planner::testing {

inline strategies::PlannedCall planned(const DualGemmProblem& problem, std::string_view strategy,
                                       const std::string& knobs, std::string_view device = "H200") {
  const auto all = strategies::gemm::strategies_of(strategies::gemm::Product::dual_gemm, DeviceKind::cuda);
  return strategies::find_strategy<strategies::gemm::ProductProblem>(all, strategy)
      ->plan(problem, Knobs::parse(knobs), device_spec(device));
}

inline Prediction predicted(const DualGemmProblem& problem, std::string_view strategy, const std::string& knobs,
                            std::string_view device = "H200", Clocks clocks = Clocks::burst) {
  return predict(planned(problem, strategy, knobs, device).work, device_spec(device), {}, clocks);
}

}  // namespace thresher::planner::testing
