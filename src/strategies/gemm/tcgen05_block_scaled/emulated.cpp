#include "strategies/gemm/tcgen05_block_scaled/device/operation.hpp"
#include "strategies/gemm/tcgen05_block_scaled/device/prepare.hpp"
#include "strategies/gemm/tcgen05_block_scaled/kernel.hpp"

namespace thresher::strategies::gemm::tcgen05_block_scaled {
namespace {

template <Config config>
void add_one(std::vector<CompiledIn>& kernels) {
  kernels.push_back({kernel_name(config), &host_kernel<&kernel<config>>});
  if constexpr (!config.dense) {
    kernels.push_back(
        {prepare_kernel_name(config), &host_kernel<&prepare_rows_kernel<tile_widths_of(config), config.gathered>>});
  }
}

}  // namespace

std::vector<CompiledIn> compiled_in() {
  std::vector<CompiledIn> kernels{{pack_kernel_name(true, 2), &host_kernel<&pack_kernel>},
                                  {prepare_kernel_name({.dense = true}), &host_kernel<&prepare_tokens_kernel>},
                                  {pack_kernel_name(false, 1), &host_kernel<&pack_experts_kernel<1>>},
                                  {pack_kernel_name(false, 2), &host_kernel<&pack_experts_kernel<2>>}};
  for_each_config<small_config_list>([&]<Config config> { add_one<config>(kernels); });
  return kernels;
}

}  // namespace thresher::strategies::gemm::tcgen05_block_scaled
