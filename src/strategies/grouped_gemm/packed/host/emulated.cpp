#include "strategies/grouped_gemm/packed/host/emulated.hpp"

#include <utility>

#include "strategies/grouped_gemm/packed/candidates.hpp"
#include "strategies/grouped_gemm/packed/device/kernel.hpp"
#include "strategies/grouped_gemm/packed/device/pack.hpp"
#include "strategies/grouped_gemm/packed/program.hpp"

namespace thresher::strategies::grouped_gemm::packed {
namespace {

template <const auto& configs, std::size_t... index>
void add(std::vector<CompiledIn>& kernels, std::index_sequence<index...>) {
  (kernels.push_back({kernel_expression(configs[index]), &host_kernel<&kernel<configs[index]>>}), ...);
}

template <int matrices>
void add_packing(std::vector<CompiledIn>& kernels) {
  kernels.push_back(
      {pack_kernel_name(Numerics::exact, matrices), &host_kernel<&pack_experts_kernel<Packing::exact, matrices>>});
  kernels.push_back(
      {pack_kernel_name(Numerics::fast, matrices), &host_kernel<&pack_experts_kernel<Packing::fast, matrices>>});
  kernels.push_back(
      {row_factors_kernel_name(matrices), &host_kernel<&pack_experts_kernel<Packing::factors, matrices>>});
}

}  // namespace

std::vector<CompiledIn> compiled_in() {
  std::vector<CompiledIn> kernels;
  add_packing<1>(kernels);
  add_packing<2>(kernels);
  add<small_config_list>(kernels, std::make_index_sequence<small_config_list.size()>());
  return kernels;
}

}  // namespace thresher::strategies::grouped_gemm::packed
