#include "strategies/dual_gemm/packed/host/emulated.hpp"

#include <array>

#include "strategies/dual_gemm/packed/candidates.hpp"
#include "strategies/dual_gemm/packed/device/fold_tokens.hpp"
#include "strategies/dual_gemm/packed/device/kernel.hpp"
#include "strategies/dual_gemm/packed/device/pack.hpp"
#include "strategies/dual_gemm/packed/device/prepare_tokens.hpp"
#include "strategies/dual_gemm/packed/program.hpp"

namespace thresher::strategies::dual_gemm::packed {
namespace {

template <const auto& configs, std::size_t... index>
void add(std::vector<CompiledIn>& kernels, std::index_sequence<index...>) {
  (kernels.push_back({kernel_name(configs[index]), &host_kernel<&kernel<configs[index]>>}), ...);
}

template <auto kernel>
CompiledIn preparation(std::string expression) {
  return {std::move(expression), &host_kernel<kernel>};
}

}  // namespace

std::vector<CompiledIn> compiled_in() {
  std::vector<CompiledIn> kernels{
      preparation<&pack_kernel>(pack_kernel_name()),
      preparation<&row_factors_kernel>(row_factors_kernel_name()),
      preparation<&pack_fast_kernel>(pack_fast_kernel_name()),
      preparation<&widen_tokens_kernel>(widen_tokens_kernel_name()),
      preparation<&pad_tokens_kernel>(pad_tokens_kernel_name()),
      preparation<&fold_tokens_kernel<TokenFormat::nvfp4>>(fold_tokens_kernel_name(TokenFormat::nvfp4)),
      preparation<&fold_tokens_kernel<TokenFormat::fp16>>(fold_tokens_kernel_name(TokenFormat::fp16)),
      preparation<&fold_tokens_kernel<TokenFormat::bf16>>(fold_tokens_kernel_name(TokenFormat::bf16))};
  add<small_config_list>(kernels, std::make_index_sequence<small_config_list.size()>());
  add<default_config_list>(kernels, std::make_index_sequence<default_config_list.size()>());
  return kernels;
}

}  // namespace thresher::strategies::dual_gemm::packed
