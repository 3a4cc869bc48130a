#include "strategies/dual_gemm/sequential/strategy.hpp"

#include "strategies/dual_gemm/fused/strategy.hpp"

namespace thresher::strategies::dual_gemm {

const Strategy<ProductProblem>& sequential_strategy() {
  static const fused::FusedStrategy strategy(fused::Order::sequential,
                                             "the whole gate product, then the whole up product, one fused epilogue");
  return strategy;
}

}  // namespace thresher::strategies::dual_gemm
