#include "strategies/gemm/device/gather.hpp"
#include "strategies/gemm/device/quantize_rows.hpp"
#include "strategies/gemm/gather.hpp"
#include "strategies/gemm/output_quantization.hpp"
#include "strategies/gemm/wgmma/device/columns.hpp"
#include "strategies/gemm/wgmma/device/rows.hpp"
#include "strategies/gemm/wgmma/kernel.hpp"
#include "strategies/gemm/wgmma/tiles.hpp"
#include "strategies/host/emulated_kernels.hpp"

namespace thresher::strategies::gemm::wgmma {

std::vector<CompiledIn> compiled_in() {
  std::vector<CompiledIn> kernels{
      {gather_kernel_name(), &host_kernel<&gather_rows_kernel>},
      {quantize_rows_kernel_name(Format::fp8_tensor),
       &host_kernel<&quantize_rows_kernel<QuantizedOutputRows::fp8_tensor>>},
      {quantize_rows_kernel_name(Format::fp8_row), &host_kernel<&quantize_rows_kernel<QuantizedOutputRows::fp8_row>>},
      {quantize_rows_kernel_name(Format::fp8_block),
       &host_kernel<&quantize_rows_kernel<QuantizedOutputRows::fp8_block>>},
      {quantize_rows_kernel_name(Format::nvfp4), &host_kernel<&quantize_rows_kernel<QuantizedOutputRows::nvfp4>>}};
  for_each_config<columns::small_config_list>(
      [&]<Config config> { kernels.push_back({kernel_expression(config), &host_kernel<&columns_kernel<config>>}); });
  for_each_config<rows::small_config_list>(
      [&]<Config config> { kernels.push_back({kernel_expression(config), &host_kernel<&rows_kernel<config>>}); });
  return kernels;
}

}  // namespace thresher::strategies::gemm::wgmma
