#include "strategies/grouped_gemm/rows/host/emulated.hpp"

#include <utility>

#include "strategies/grouped_gemm/rows/candidates.hpp"
#include "strategies/grouped_gemm/rows/device/kernel.hpp"
#include "strategies/grouped_gemm/rows/program.hpp"

namespace thresher::strategies::grouped_gemm::rows {
namespace {

template <std::size_t... index>
std::vector<CompiledIn> kernels(std::index_sequence<index...>) {
  return {{kernel_expression(small_config_list[index]), &host_kernel<&kernel<small_config_list[index]>>}...};
}

}  // namespace

std::vector<CompiledIn> compiled_in() { return kernels(std::make_index_sequence<small_config_list.size()>()); }

}  // namespace thresher::strategies::grouped_gemm::rows
