#include "strategies/grouped_gemm/columns/host/emulated.hpp"

#include <utility>

#include "strategies/grouped_gemm/columns/candidates.hpp"
#include "strategies/grouped_gemm/columns/device/kernel.hpp"
#include "strategies/grouped_gemm/columns/program.hpp"
#include "strategies/grouped_gemm/device/gather.hpp"
#include "strategies/grouped_gemm/host/gather.hpp"

namespace thresher::strategies::grouped_gemm::columns {
namespace {

template <const auto& configs, std::size_t... index>
void add(std::vector<CompiledIn>& kernels, std::index_sequence<index...>) {
  (kernels.push_back({kernel_expression(configs[index]), &host_kernel<&kernel<configs[index]>>}), ...);
}

}  // namespace

std::vector<CompiledIn> compiled_in() {
  std::vector<CompiledIn> kernels{{gather_kernel_name(), &host_kernel<&gather_rows_kernel>}};
  add<small_config_list>(kernels, std::make_index_sequence<small_config_list.size()>());
  return kernels;
}

}  // namespace thresher::strategies::grouped_gemm::columns
