#include "strategies/dual_gemm/registry.hpp"

#include "strategies/dual_gemm/interleaved/strategy.hpp"
#include "strategies/dual_gemm/one_group/strategy.hpp"
#include "strategies/dual_gemm/packed/strategy.hpp"
#include "strategies/dual_gemm/pingpong/strategy.hpp"
#include "strategies/dual_gemm/sequential/strategy.hpp"
#include "strategies/dual_gemm/tcgen05/strategy.hpp"
#include "strategies/dual_gemm/tcgen05_plain/strategy.hpp"
#include "strategies/gemm/cpu/strategy.hpp"
#include "strategies/gemm/two_pass/strategy.hpp"
#include "strategies/registry.hpp"

namespace thresher::strategies::dual_gemm {
namespace {

Registry<ProductProblem>& registry() {
  static Registry<ProductProblem> all(
      "the dual GEMM",
      {&packed_strategy(), &interleaved_strategy(), &sequential_strategy(), &pingpong_strategy(), &columns_strategy(),
       &rows_strategy(), &tcgen05_strategy(), &tcgen05_plain_strategy(), &two_pass_strategy()},
      {&cpu_interleaved_strategy(), &cpu_two_pass_strategy()});
  return all;
}

}  // namespace

Strategies<ProductProblem> strategies_of(DeviceKind kind) { return registry().of(kind); }

void register_strategy(const Strategy<ProductProblem>& strategy) { registry().add(strategy); }

}  // namespace thresher::strategies::dual_gemm
