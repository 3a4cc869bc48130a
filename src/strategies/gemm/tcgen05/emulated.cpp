#include "strategies/gemm/tcgen05/device/block_scaled.hpp"
#include "strategies/gemm/tcgen05/device/plain.hpp"
#include "strategies/gemm/tcgen05/device/prepare.hpp"
#include "strategies/gemm/tcgen05/kernel.hpp"
#include "strategies/gemm/tcgen05/tiles.hpp"
#include "strategies/host/emulated_kernels.hpp"

namespace thresher::strategies::gemm::tcgen05 {

std::vector<CompiledIn> compiled_in() {
  using namespace block_scaled;
  std::vector<CompiledIn> kernels{{pack_kernel_name(true, 2), &host_kernel<&pack_kernel>},
                                  {prepare_kernel_name({.dense = true}), &host_kernel<&prepare_tokens_kernel>},
                                  {pack_kernel_name(false, 1), &host_kernel<&pack_experts_kernel<1>>},
                                  {pack_kernel_name(false, 2), &host_kernel<&pack_experts_kernel<2>>}};
  for_each_config<small_nvfp4_configs>([&]<Config config> {
    kernels.push_back({kernel_name(config), &host_kernel<&block_scaled::kernel<config>>});
    if constexpr (!config.dense) {
      kernels.push_back(
          {prepare_kernel_name(config), &host_kernel<&prepare_rows_kernel<tile_widths_of(config), config.gathered>>});
    }
  });
  for_each_config<small_plain_configs>(
      [&]<Config config> { kernels.push_back({kernel_name(config), &host_kernel<&tcgen05::kernel<config>>}); });
  return kernels;
}

}  // namespace thresher::strategies::gemm::tcgen05
