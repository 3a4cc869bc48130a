#include "strategies/grouped_gemm/columns/host/emulated.hpp"

#include <utility>

#include "strategies/grouped_gemm/columns/candidates.hpp"
#include "strategies/grouped_gemm/columns/device/kernel.hpp"
#include "strategies/grouped_gemm/columns/program.hpp"
#include "strategies/grouped_gemm/device/gather.hpp"
#include "strategies/grouped_gemm/device/requantise_rows.hpp"
#include "strategies/grouped_gemm/host/gather.hpp"
#include "strategies/grouped_gemm/host/requantise.hpp"

namespace thresher::strategies::grouped_gemm::columns {
namespace {

template <const auto& configs, std::size_t... index>
void add(std::vector<CompiledIn>& kernels, std::index_sequence<index...>) {
  (kernels.push_back({kernel_expression(configs[index]), &host_kernel<&kernel<configs[index]>>}), ...);
}

}  // namespace

std::vector<CompiledIn> compiled_in() {
  std::vector<CompiledIn> kernels{
      {gather_kernel_name(), &host_kernel<&gather_rows_kernel>},
      {quantize_rows_kernel_name(Format::fp8_tensor),
       &host_kernel<&quantize_rows_kernel<QuantizedOutputRows::fp8_tensor>>},
      {quantize_rows_kernel_name(Format::fp8_row), &host_kernel<&quantize_rows_kernel<QuantizedOutputRows::fp8_row>>},
      {quantize_rows_kernel_name(Format::fp8_block),
       &host_kernel<&quantize_rows_kernel<QuantizedOutputRows::fp8_block>>},
      {quantize_rows_kernel_name(Format::nvfp4), &host_kernel<&quantize_rows_kernel<QuantizedOutputRows::nvfp4>>}};
  add<small_config_list>(kernels, std::make_index_sequence<small_config_list.size()>());
  return kernels;
}

}  // namespace thresher::strategies::grouped_gemm::columns
