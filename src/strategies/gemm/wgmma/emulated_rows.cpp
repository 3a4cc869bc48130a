#include "strategies/gemm/wgmma/emulated.hpp"

#include <utility>

#include "strategies/gemm/wgmma/device/rows.hpp"
#include "strategies/gemm/wgmma/strategy.hpp"
#include "strategies/gemm/wgmma/tiles.hpp"

namespace thresher::strategies::gemm::wgmma {
namespace {

template <std::size_t... index>
std::vector<CompiledIn> kernels(std::index_sequence<index...>) {
  using rows::small_config_list;
  return {{kernel_expression(small_config_list[index]), &host_kernel<&rows_kernel<small_config_list[index]>>}...};
}

}  // namespace

std::vector<CompiledIn> rows_compiled_in() {
  return kernels(std::make_index_sequence<rows::small_config_list.size()>());
}

}  // namespace thresher::strategies::gemm::wgmma
