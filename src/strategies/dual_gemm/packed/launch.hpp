#pragma once
/// What a configuration of the packed NVFP4 dual GEMM launches: packing, preparing tokens, the product.
#include "strategies/dual_gemm/packed/config.hpp"
#include "strategies/gemm/problem.hpp"
#include "strategies/planned_call.hpp"

namespace thresher::strategies::dual_gemm::packed {

/// `config` has no obstacle.
[[nodiscard]] PlannedCall planned_call(const ProductProblem& problem, const Config& config);

/// Weights [n, k], once when a model is loaded, into PlannedCall::packed.
[[nodiscard]] PlannedCall packing_call(Numerics numerics, std::int64_t n, std::int64_t k);

}  // namespace thresher::strategies::dual_gemm::packed
