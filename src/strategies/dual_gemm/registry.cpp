#include "strategies/dual_gemm/registry.hpp"

#include "strategies/dual_gemm/cpu/strategy.hpp"
#include "strategies/dual_gemm/interleaved/strategy.hpp"
#include "strategies/dual_gemm/packed/strategy.hpp"
#include "strategies/dual_gemm/pingpong/strategy.hpp"
#include "strategies/dual_gemm/sequential/strategy.hpp"
#include "strategies/dual_gemm/two_pass/strategy.hpp"
#include "thresher/error.hpp"

namespace thresher::strategies::dual_gemm {
namespace {

using List = std::vector<const Strategy<DualGemmProblem>*>;

List& list_of(DeviceKind kind) {
  static List gpu{&packed_strategy(), &interleaved_strategy(), &sequential_strategy(), &pingpong_strategy(),
                  &two_pass_strategy()};
  static List cpu{&cpu_interleaved_strategy(), &cpu_two_pass_strategy()};
  return kind == DeviceKind::cpu ? cpu : gpu;
}

}  // namespace

Strategies<DualGemmProblem> strategies_of(DeviceKind kind) { return list_of(kind); }

void register_strategy(const Strategy<DualGemmProblem>& strategy) {
  List& list = list_of(strategy.device_kind());
  if (find_strategy<DualGemmProblem>(list, strategy.name()) != nullptr) {
    throw Error(ErrorCode::invalid_argument,
                "there is a dual-GEMM strategy " + std::string(strategy.name()) + " already: choose another name");
  }
  list.push_back(&strategy);
}

}  // namespace thresher::strategies::dual_gemm
