#include "strategies/dual_gemm/fused/program.hpp"

#include <fmt/format.h>

#include "strategies/dual_gemm/fused/host/defaults.hpp"

namespace thresher::strategies::dual_gemm::fused {
namespace {

constexpr std::string_view scope = "thresher::strategies::dual_gemm::fused::";

std::string_view name(Strategy strategy) {
  switch (strategy) {
    case Strategy::sequential: return "sequential";
    case Strategy::interleaved: return "interleaved";
    case Strategy::pingpong: break;
  }
  return "pingpong";
}

std::string_view name(Number number) {
  switch (number) {
    case Number::fp16: return "fp16";
    case Number::bf16: return "bf16";
    case Number::fp32: break;
  }
  return "fp32";
}

std::string_view name(ActivationCode activation) {
  switch (activation) {
    case ActivationCode::silu: return "silu";
    case ActivationCode::gelu_tanh: return "gelu_tanh";
    case ActivationCode::swiglu_clamped: break;
  }
  return "swiglu_clamped";
}

}  // namespace

std::string kernel_expression(const Config& c) {
  return fmt::format(
      "{0}kernel<{0}Config{{{0}Strategy::{1}, {0}Number::{2}, {0}Number::{3}, {0}ActivationCode::{4}, {5}, {6}, {7}, "
      "{8}, "
      "{9}, {10}, {11}, {0}Epilogue::{12}, thresher::pipeline::Raster::{13}, {14}, {15}, {16}, {17}, "
      "static_cast<thresher::pipeline::Ablation>({18})}}>",
      scope, name(c.strategy), name(c.operand), name(c.output), name(c.activation), c.warpgroup_tiles,
      c.math_warpgroups, c.block_outputs, c.block_k, c.stages, c.multicast, c.split_k,
      c.epilogue == Epilogue::tma ? "tma" : "simt", c.raster == Raster::rows_first ? "rows_first" : "columns_first",
      c.persistent, c.loader_registers, c.math_registers, c.profiled, static_cast<int>(c.ablation));
}

std::string title(const Config& c) {
  return fmt::format("dual_gemm {} {} to {}, {} tokens x {} outputs x {} of k, {} stages", name(c.strategy),
                     name(c.operand), name(c.output), block_tokens(c), c.block_outputs, c.block_k, c.stages);
}

std::vector<Config> default_configs() { return {default_config_list.begin(), default_config_list.end()}; }

DeviceProgram program(const Config& config) {
  return {.title = title(config),
          .text = "#include \"strategies/dual_gemm/fused/kernel.hpp\"\n",
          .kernels = {kernel_expression(config)},
          .options = {},
          .only_arch = Arch::sm_90a};
}

}  // namespace thresher::strategies::dual_gemm::fused
