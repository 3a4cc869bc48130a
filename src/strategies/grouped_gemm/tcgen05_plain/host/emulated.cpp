#include "strategies/grouped_gemm/tcgen05_plain/host/emulated.hpp"

#include <utility>

#include "strategies/grouped_gemm/tcgen05_plain/candidates.hpp"
#include "strategies/grouped_gemm/tcgen05_plain/device/kernel.hpp"
#include "strategies/grouped_gemm/tcgen05_plain/program.hpp"

namespace thresher::strategies::grouped_gemm::tcgen05_plain {
namespace {

template <std::size_t... index>
void add(std::vector<CompiledIn>& kernels, std::index_sequence<index...>) {
  (kernels.push_back({kernel_expression(small_config_list[index]), &host_kernel<&kernel<small_config_list[index]>>}),
   ...);
}

}  // namespace

std::vector<CompiledIn> compiled_in() {
  std::vector<CompiledIn> kernels;
  add(kernels, std::make_index_sequence<small_config_list.size()>());
  return kernels;
}

}  // namespace thresher::strategies::grouped_gemm::tcgen05_plain
