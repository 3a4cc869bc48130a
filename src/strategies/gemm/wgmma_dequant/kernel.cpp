#include "strategies/gemm/wgmma_dequant/kernel.hpp"

#include <fmt/format.h>

#include "strategies/gemm/common_knobs.hpp"

namespace thresher::strategies::gemm::wgmma_dequant {
namespace {

constexpr const char* scope = "thresher::strategies::gemm::wgmma_dequant::";

constexpr Packing packings[] = {Packing::exact, Packing::factors, Packing::fast};

std::string spelling(Packing packing) {
  return fmt::format("{}Packing::{}", scope,
                     packing == Packing::exact  ? "exact"
                     : packing == Packing::fast ? "fast"
                                                : "factors");
}

KnobTable<Config> make_table() {
  const auto grouped = [](const Config& config) { return !config.dense; };
  return {
      "thresher::strategies::gemm::wgmma_dequant::Config",
      {from_problem(flag("dense", &Config::dense, "")),
       numerics_knob("numerics", &Config::numerics,
                     "value x scale enters the tensor cores exactly, or rounded to e4m3 at twice the rate"),
       number_knob("operand", &Config::operand),
       number_knob("output", &Config::output),
       from_problem(number("matrices", &Config::matrices, {1, 2}, "")),
       activation_knob("activation", &Config::activation),
       from_problem(flag("bias", &Config::bias, "")),
       from_problem(flag("row_weights", &Config::row_weights, "")),
       from_problem(flag("gathered", &Config::gathered, "")),
       range("math_warpgroups", &Config::math_warpgroups, 1, 7, 1, "warpgroups that multiply, 64 rows of weights each"),
       only_where<Config>(grouped, number("least_tokens", &Config::least_tokens, {8, 16, 32, 64, 128},
                                          "grouped: columns of a tile at least")),
       number("block_tokens", &Config::block_tokens, {8, 16, 32, 64, 96, 128, 160, 192, 256},
              "the most tokens of a tile"),
       only_where<Config>(grouped,
                          number("token_step", &Config::token_step, {0, 16, 32, 64},
                                 "grouped: between widths of more than 64 columns; 0: each is twice the one below")),
       number("blocks_per_slot", &Config::blocks_per_slot, {1, 2, 3, 4},
              "blocks of weights along K in a stage: of 64 elements (exact) or 128 (fast)"),
       range("stages", &Config::stages, 1, 16, 1, "stage buffers"),
       only_where<Config>(
           grouped, flag("static_tiles", &Config::static_tiles,
                         "of one group: a block has one tile, and loads weights before the launch ahead has ended")),
       number("split_k", &Config::split_k, {1, 2, 3, 4, 5, 6, 7, 8},
              "blocks of a cluster that share the K of its one tile and add up"),
       range("blocks_resident", &Config::blocks_resident, 1, 8, 1, "blocks meant to share a multiprocessor"),
       choice<Config, Overlap>(
           "overlap", &Config::overlap, "thresher::pipeline::Overlap",
           {{"step", Overlap::step}, {"block", Overlap::block}, {"none", Overlap::none}},
           "the next fragments are made between steps, while a whole block is multiplied, or after it"),
       registers_knob("loader_registers", &Config::loader_registers, "of a producer thread; 0: as launched"),
       registers_knob("math_registers", &Config::math_registers, "of a consumer thread; 0: as launched"),
       from_problem(flag("profiled", &Config::profiled, "")),
       ablation_knob("ablation", &Config::ablation),
       of_launch(flag("dependent_launch", &Config::dependent_launch, "starts before the launch ahead has ended"))}};
}

}  // namespace

const KnobTable<Config>& knob_table() {
  static const KnobTable<Config> table = make_table();
  return table;
}

std::string kernel_expression(const Config& config) {
  return fmt::format("{}kernel<{}>", scope, knob_table().spelling(config));
}

DeviceProgram program(const Config& config) {
  return {
      .title = fmt::format("{} packed{}, {} outputs x {} tokens, split {}", config.dense ? "dual_gemm" : "grouped_gemm",
                           config.numerics == Numerics::fast ? " fast" : "", tile_outputs(config), config.block_tokens,
                           config.split_k),
      .text = "#include \"strategies/gemm/wgmma_dequant/device/operation.hpp\"\n",
      .kernels = {kernel_expression(config)},
      .options = {},
      .only_arch = Arch::sm_90a};
}

DeviceProgram preparation_program() {
  DeviceProgram program{.title = "nvfp4 preparation",
                        .text =
                            "#include \"strategies/gemm/wgmma_dequant/device/dequantize_tokens.hpp\"\n"
                            "#include \"strategies/gemm/wgmma_dequant/device/pack.hpp\"\n"
                            "#include \"strategies/gemm/wgmma_dequant/device/quantize_tokens.hpp\"\n",
                        .kernels = {dequantize_tokens_kernel_name(), pad_tokens_kernel_name()},
                        .options = {}};
  for (const TokenFormat format : {TokenFormat::nvfp4, TokenFormat::fp16, TokenFormat::bf16}) {
    program.kernels.push_back(quantize_tokens_kernel_name(format));
  }
  for (const Packing packing : packings) {
    program.kernels.push_back(pack_kernel_name(packing));
    program.kernels.push_back(pack_experts_kernel_name(packing, 1));
    program.kernels.push_back(pack_experts_kernel_name(packing, 2));
  }
  return program;
}

std::string pack_kernel_name(Packing packing) { return fmt::format("{}pack_kernel<{}>", scope, spelling(packing)); }
std::string pack_experts_kernel_name(Packing packing, int matrices) {
  return fmt::format("{}pack_experts_kernel<{}, {}>", scope, spelling(packing), matrices);
}
std::string quantize_tokens_kernel_name(TokenFormat format) {
  return fmt::format("{0}quantize_tokens_kernel<static_cast<{0}TokenFormat>({1})>", scope, static_cast<int>(format));
}
std::string dequantize_tokens_kernel_name() { return std::string(scope) + "dequantize_tokens_kernel"; }
std::string pad_tokens_kernel_name() { return std::string(scope) + "pad_tokens_kernel"; }

}  // namespace thresher::strategies::gemm::wgmma_dequant
