#include "strategies/grouped_gemm/tcgen05/host/emulated.hpp"

#include <utility>

#include "strategies/grouped_gemm/tcgen05/candidates.hpp"
#include "strategies/grouped_gemm/tcgen05/device/kernel.hpp"
#include "strategies/grouped_gemm/tcgen05/device/pack.hpp"
#include "strategies/grouped_gemm/tcgen05/device/prepare_rows.hpp"
#include "strategies/grouped_gemm/tcgen05/program.hpp"

namespace thresher::strategies::grouped_gemm::tcgen05 {
namespace {

template <Config config>
void add_one(std::vector<CompiledIn>& kernels) {
  kernels.push_back({kernel_expression(config), &host_kernel<&kernel<config>>});
  kernels.push_back(
      {prepare_kernel_name(config), &host_kernel<&prepare_rows_kernel<tile_widths_of(config), config.gathered>>});
}

template <const auto& configs, std::size_t... index>
void add(std::vector<CompiledIn>& kernels, std::index_sequence<index...>) {
  (add_one<configs[index]>(kernels), ...);
}

}  // namespace

std::vector<CompiledIn> compiled_in() {
  std::vector<CompiledIn> kernels{{pack_kernel_name(1), &host_kernel<&pack_experts_kernel<1>>},
                                  {pack_kernel_name(2), &host_kernel<&pack_experts_kernel<2>>}};
  add<small_config_list>(kernels, std::make_index_sequence<small_config_list.size()>());
  return kernels;
}

}  // namespace thresher::strategies::grouped_gemm::tcgen05
