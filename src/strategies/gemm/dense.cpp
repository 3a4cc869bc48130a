#include "strategies/gemm/dense.hpp"

#include <algorithm>
#include <utility>

#include "strategies/gemm/tensors.hpp"

namespace thresher::strategies::gemm {
namespace {

bool is_of_offsets(const Access& access) {
  return (access.memory == Access::Memory::tensor && access.index == groups_index) ||
         (access.memory == Access::Memory::workspace && access.index == status_piece);
}

}  // namespace

PlannedCall without_offsets(PlannedCall call) {
  for (Step& step : call.steps) {
    if (auto* const launch = std::get_if<KernelLaunch>(&step)) {
      std::erase_if(launch->accesses, is_of_offsets);
    }
  }
  // Behind the status other pieces stay where they are: launches name them by their index.
  if (call.workspace.size() == status_piece + 1) {
    call.workspace.clear();
  }
  return call;
}

}  // namespace thresher::strategies::gemm
