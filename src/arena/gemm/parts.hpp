#pragma once
/// Parts of a product's Operation (operation.cpp), in files of their own.
#include "arena/operation/operation.hpp"
#include "strategies/gemm/registry.hpp"

namespace thresher::arena {

/// The product whose strategies compute it.
[[nodiscard]] inline strategies::gemm::Product product_kind(bool is_dense, bool is_dual) noexcept {
  using strategies::gemm::Product;
  if (!is_dense) {
    return Product::grouped;
  }
  return is_dual ? Product::dual_gemm : Product::gemm;
}

// fields.cpp
void add_product_problems(bool is_dense, bool is_dual, const ProblemTable& tables, std::vector<Problem>& problems);

// emulated.cpp
[[nodiscard]] const EmulatedOperation* product_emulation(bool is_dense, bool is_dual);

// dual_gemm.cpp
[[nodiscard]] std::vector<CalibrationCase> dual_gemm_calibration_cases();
[[nodiscard]] const TunedChoices* dual_gemm_tuned_choices();

}  // namespace thresher::arena
