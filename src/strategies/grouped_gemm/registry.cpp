#include "strategies/grouped_gemm/registry.hpp"

#include "strategies/gemm/cpu/strategy.hpp"
#include "strategies/grouped_gemm/columns/strategy.hpp"
#include "strategies/grouped_gemm/packed/strategy.hpp"
#include "strategies/grouped_gemm/rows/strategy.hpp"
#include "strategies/grouped_gemm/tcgen05/strategy.hpp"
#include "strategies/grouped_gemm/tcgen05_plain/strategy.hpp"
#include "strategies/registry.hpp"

namespace thresher::strategies::grouped_gemm {
namespace {

Registry<ProductProblem>& registry() {
  static Registry<ProductProblem> all(
      "the grouped GEMM",
      {&columns_strategy(), &rows_strategy(), &packed_strategy(), &tcgen05_strategy(), &tcgen05_plain_strategy()},
      {&cpu_by_expert_strategy()});
  return all;
}

}  // namespace

Strategies<ProductProblem> strategies_of(DeviceKind kind) { return registry().of(kind); }

void register_strategy(const Strategy<ProductProblem>& strategy) { registry().add(strategy); }

}  // namespace thresher::strategies::grouped_gemm
