#include "strategies/gemm/device/gather.hpp"
#include "strategies/gemm/device/quantize_rows.hpp"
#include "strategies/gemm/formats.hpp"
#include "strategies/gemm/gather.hpp"
#include "strategies/gemm/output_quantization.hpp"
#include "strategies/gemm/wgmma/device/columns.hpp"
#include "strategies/gemm/wgmma/device/rows.hpp"
#include "strategies/gemm/wgmma/kernel.hpp"
#include "strategies/gemm/wgmma/tiles.hpp"
#include "strategies/host/emulated_kernels.hpp"

namespace thresher::strategies::gemm::wgmma {
namespace {

template <QuantizedOutputRows kind, Number number>
CompiledIn quantizing(Format out) {
  return {quantize_rows_kernel_name(format_of(number), out), &host_kernel<&quantize_rows_kernel<kind, number>>};
}

}  // namespace

std::vector<CompiledIn> compiled_in() {
  std::vector<CompiledIn> kernels{{gather_kernel_name(), &host_kernel<&gather_rows_kernel>},
                                  quantizing<QuantizedOutputRows::fp8_tensor, Number::fp32>(Format::fp8_tensor),
                                  quantizing<QuantizedOutputRows::fp8_row, Number::fp32>(Format::fp8_row),
                                  quantizing<QuantizedOutputRows::fp8_block, Number::fp32>(Format::fp8_block),
                                  quantizing<QuantizedOutputRows::nvfp4, Number::fp32>(Format::nvfp4),
                                  quantizing<QuantizedOutputRows::fp8_row, Number::fp16>(Format::fp8_row),
                                  quantizing<QuantizedOutputRows::fp8_block, Number::fp16>(Format::fp8_block),
                                  quantizing<QuantizedOutputRows::fp8_row, Number::bf16>(Format::fp8_row),
                                  quantizing<QuantizedOutputRows::fp8_block, Number::bf16>(Format::fp8_block)};
  for_each_config<columns::small_config_list>(
      [&]<Config config> { kernels.push_back({kernel_expression(config), &host_kernel<&columns_kernel<config>>}); });
  for_each_config<rows::small_config_list>(
      [&]<Config config> { kernels.push_back({kernel_expression(config), &host_kernel<&rows_kernel<config>>}); });
  return kernels;
}

}  // namespace thresher::strategies::gemm::wgmma
