#pragma once
/// What `two_pass` launches.
#include "strategies/dual_gemm/two_pass/config.hpp"
#include "strategies/gemm/problem.hpp"
#include "strategies/planned_call.hpp"

namespace thresher::strategies::dual_gemm::two_pass {

/// The format in which both operands enter the product, without losing a bit: value×scale of NVFP4 fits fp16 and bf16;
/// fp16 and bf16 together fit only float32.
[[nodiscard]] Format product_format(Format a, Format b);

/// The blocks of its largest conversion or of the activation.
[[nodiscard]] std::int64_t max_blocks(const ProductProblem& problem);

[[nodiscard]] PlannedCall planned_call(const ProductProblem& problem, const Config& config);

}  // namespace thresher::strategies::dual_gemm::two_pass
