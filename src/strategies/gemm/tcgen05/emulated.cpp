#include "strategies/gemm/tcgen05/device/operation.hpp"
#include "strategies/gemm/tcgen05/kernel.hpp"

namespace thresher::strategies::gemm::tcgen05 {

std::vector<CompiledIn> compiled_in() {
  std::vector<CompiledIn> kernels;
  for_each_config<small_config_list>(
      [&]<Config config> { kernels.push_back({kernel_name(config), &host_kernel<&kernel<config>>}); });
  return kernels;
}

}  // namespace thresher::strategies::gemm::tcgen05
