#include <utility>

#include "strategies/gemm/tcgen05/device/operation.hpp"
#include "strategies/gemm/tcgen05/kernel.hpp"

namespace thresher::strategies::gemm::tcgen05 {
namespace {

template <std::size_t... index>
void add(std::vector<CompiledIn>& kernels, std::index_sequence<index...>) {
  (kernels.push_back({kernel_name(small_config_list[index]), &host_kernel<&kernel<small_config_list[index]>>}), ...);
}

}  // namespace

std::vector<CompiledIn> compiled_in() {
  std::vector<CompiledIn> kernels;
  add(kernels, std::make_index_sequence<small_config_list.size()>());
  return kernels;
}

}  // namespace thresher::strategies::gemm::tcgen05
