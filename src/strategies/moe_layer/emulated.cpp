#include "strategies/gemm/formats.hpp"
#include "strategies/host/emulated_kernels.hpp"
#include "strategies/moe_layer/calls.hpp"
#include "strategies/moe_layer/device/combine.hpp"
#include "strategies/moe_layer/device/quantize.hpp"
#include "strategies/moe_layer/device/route.hpp"

namespace thresher::strategies::moe_layer {
namespace {

template <Number rows, Number out>
void add_combining(std::vector<CompiledIn>& kernels) {
  kernels.push_back({combine_kernel_name(gemm::format_of(rows), gemm::format_of(out)),
                     &host_kernel<&combine_rows_kernel<rows, out>>});
}

template <Number rows>
void add_combining(std::vector<CompiledIn>& kernels) {
  add_combining<rows, Number::fp16>(kernels);
  add_combining<rows, Number::bf16>(kernels);
  add_combining<rows, Number::fp32>(kernels);
}

}  // namespace

std::vector<CompiledIn> compiled_in() {
  std::vector<CompiledIn> kernels{{count_kernel_name(), &host_kernel<&count_choices_kernel>},
                                  {place_kernel_name(), &host_kernel<&place_choices_kernel>}};
  kernels.push_back({quantize_kernel_name(Format::fp16), &host_kernel<&quantize_choices_kernel<gemm::Number::fp16>>});
  kernels.push_back({quantize_kernel_name(Format::bf16), &host_kernel<&quantize_choices_kernel<gemm::Number::bf16>>});
  add_combining<Number::fp16>(kernels);
  add_combining<Number::bf16>(kernels);
  add_combining<Number::fp32>(kernels);
  return kernels;
}

}  // namespace thresher::strategies::moe_layer
