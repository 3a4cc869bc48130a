#include "strategies/dual_gemm/tcgen05/host/emulated.hpp"

#include "strategies/dual_gemm/tcgen05/candidates.hpp"
#include "strategies/dual_gemm/tcgen05/device/kernel.hpp"
#include "strategies/dual_gemm/tcgen05/device/pack.hpp"
#include "strategies/dual_gemm/tcgen05/device/prepare_tokens.hpp"
#include "strategies/dual_gemm/tcgen05/program.hpp"

namespace thresher::strategies::dual_gemm::tcgen05 {
namespace {

template <std::size_t... index>
void add(std::vector<CompiledIn>& kernels, std::index_sequence<index...>) {
  (kernels.push_back({kernel_name(small_config_list[index]), &host_kernel<&kernel<small_config_list[index]>>}), ...);
}

}  // namespace

std::vector<CompiledIn> compiled_in() {
  std::vector<CompiledIn> kernels{{pack_kernel_name(), &host_kernel<&pack_kernel>},
                                  {prepare_tokens_kernel_name(), &host_kernel<&prepare_tokens_kernel>}};
  add(kernels, std::make_index_sequence<small_config_list.size()>());
  return kernels;
}

}  // namespace thresher::strategies::dual_gemm::tcgen05
