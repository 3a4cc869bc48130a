#include "strategies/gemm/wgmma/emulated.hpp"

#include <utility>

#include "strategies/gemm/device/gather.hpp"
#include "strategies/gemm/device/quantize_rows.hpp"
#include "strategies/gemm/gather.hpp"
#include "strategies/gemm/output_quantization.hpp"
#include "strategies/gemm/wgmma/device/columns.hpp"
#include "strategies/gemm/wgmma/strategy.hpp"
#include "strategies/gemm/wgmma/tiles.hpp"

namespace thresher::strategies::gemm::wgmma {
namespace {

template <std::size_t... index>
void add(std::vector<CompiledIn>& kernels, std::index_sequence<index...>) {
  using columns::small_config_list;
  (kernels.push_back(
       {kernel_expression(small_config_list[index]), &host_kernel<&columns_kernel<small_config_list[index]>>}),
   ...);
}

}  // namespace

std::vector<CompiledIn> columns_compiled_in() {
  std::vector<CompiledIn> kernels{
      {gather_kernel_name(), &host_kernel<&gather_rows_kernel>},
      {quantize_rows_kernel_name(Format::fp8_tensor),
       &host_kernel<&quantize_rows_kernel<QuantizedOutputRows::fp8_tensor>>},
      {quantize_rows_kernel_name(Format::fp8_row), &host_kernel<&quantize_rows_kernel<QuantizedOutputRows::fp8_row>>},
      {quantize_rows_kernel_name(Format::fp8_block),
       &host_kernel<&quantize_rows_kernel<QuantizedOutputRows::fp8_block>>},
      {quantize_rows_kernel_name(Format::nvfp4), &host_kernel<&quantize_rows_kernel<QuantizedOutputRows::nvfp4>>}};
  add(kernels, std::make_index_sequence<columns::small_config_list.size()>());
  return kernels;
}

}  // namespace thresher::strategies::gemm::wgmma
