#include "strategies/dual_gemm/pingpong/strategy.hpp"

#include "strategies/dual_gemm/fused/strategy.hpp"

namespace thresher::strategies::dual_gemm {

const Strategy<ProductProblem>& pingpong_strategy() {
  static const fused::FusedStrategy strategy(
      fused::Order::pingpong,
      "as interleaved; two warpgroups alternate, one multiplies while the other finishes its tile");
  return strategy;
}

}  // namespace thresher::strategies::dual_gemm
