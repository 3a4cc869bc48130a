#include "strategies/gemm/wgmma_dequant/device/dequantize_tokens.hpp"
#include "strategies/gemm/wgmma_dequant/device/operation.hpp"
#include "strategies/gemm/wgmma_dequant/kernel.hpp"
#include "strategies/gemm/wgmma_dequant/tiles.hpp"
#include "strategies/host/emulated_kernels.hpp"

namespace thresher::strategies::gemm::wgmma_dequant {
namespace {

template <TokenFormat... formats>
void add_quantizing(std::vector<CompiledIn>& kernels) {
  (kernels.push_back({quantize_tokens_kernel_name(formats), &host_kernel<&quantize_tokens_kernel<formats>>}), ...);
}

template <Packing... packings>
void add_packing(std::vector<CompiledIn>& kernels) {
  (kernels.push_back({pack_kernel_name(packings), &host_kernel<&pack_kernel<packings>>}), ...);
  (kernels.push_back({pack_experts_kernel_name(packings, 1), &host_kernel<&pack_experts_kernel<packings, 1>>}), ...);
  (kernels.push_back({pack_experts_kernel_name(packings, 2), &host_kernel<&pack_experts_kernel<packings, 2>>}), ...);
}

}  // namespace

std::vector<CompiledIn> compiled_in() {
  std::vector<CompiledIn> kernels{{dequantize_tokens_kernel_name(), &host_kernel<&dequantize_tokens_kernel>},
                                  {pad_tokens_kernel_name(), &host_kernel<&pad_tokens_kernel>}};
  add_quantizing<TokenFormat::nvfp4, TokenFormat::fp16, TokenFormat::bf16>(kernels);
  add_packing<Packing::exact, Packing::factors, Packing::fast>(kernels);
  const auto add_product = [&]<Config config> {
    kernels.push_back({kernel_expression(config), &host_kernel<&kernel<config>>});
  };
  for_each_config<small_configs>(add_product);
  for_each_config<dense_default_configs>(add_product);
  return kernels;
}

}  // namespace thresher::strategies::gemm::wgmma_dequant
