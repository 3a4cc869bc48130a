#include "strategies/dual_gemm/interleaved/strategy.hpp"

#include "strategies/dual_gemm/fused/strategy.hpp"

namespace thresher::strategies::dual_gemm {

const Strategy<ProductProblem>& interleaved_strategy() {
  static const fused::FusedStrategy strategy(
      fused::Order::interleaved, "each tile of tokens is loaded once and multiplied by gate and up side by side");
  return strategy;
}

}  // namespace thresher::strategies::dual_gemm
