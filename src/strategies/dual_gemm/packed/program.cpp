#include "strategies/dual_gemm/packed/program.hpp"

#include <fmt/format.h>

#include "strategies/gemm/common_knobs.hpp"

namespace thresher::strategies::dual_gemm::packed {
namespace {

constexpr const char* room = "thresher::strategies::dual_gemm::packed::";

Knob<Config> overlap_knob() {
  return choice<Config, Overlap>(
      "overlap", &Config::overlap, "thresher::pipeline::Overlap",
      {{"step", Overlap::step}, {"block", Overlap::block}, {"none", Overlap::none}},
      "the next fragments are made between steps, while a whole block is multiplied, or after it");
}

}  // namespace

DeviceProgram preparation_program() {
  return {.title = "nvfp4 preparation",
          .text =
              "#include \"strategies/dual_gemm/packed/device/pack.hpp\"\n#include "
              "\"strategies/dual_gemm/packed/device/prepare_tokens.hpp\"\n"
              "#include \"strategies/dual_gemm/packed/device/fold_tokens.hpp\"\n",
          .kernels = {pack_kernel_name(), row_factors_kernel_name(), pack_fast_kernel_name(),
                      widen_tokens_kernel_name(), pad_tokens_kernel_name(), fold_tokens_kernel_name(TokenFormat::nvfp4),
                      fold_tokens_kernel_name(TokenFormat::fp16), fold_tokens_kernel_name(TokenFormat::bf16)},
          .options = {}};
}

std::string pack_kernel_name() { return std::string(room) + "pack_kernel"; }
std::string row_factors_kernel_name() { return std::string(room) + "row_factors_kernel"; }
std::string pack_fast_kernel_name() { return std::string(room) + "pack_fast_kernel"; }
std::string fold_tokens_kernel_name(TokenFormat format) {
  return fmt::format("{0}fold_tokens_kernel<static_cast<{0}TokenFormat>({1})>", room, static_cast<int>(format));
}
std::string widen_tokens_kernel_name() { return std::string(room) + "widen_tokens_kernel"; }
std::string pad_tokens_kernel_name() { return std::string(room) + "pad_tokens_kernel"; }

const KnobTable<Config>& knob_table() {
  static const KnobTable<Config> table{
      "thresher::strategies::dual_gemm::packed::Config",
      {numerics_knob("numerics", &Config::numerics,
                     "value x scale enters the matrix unit exactly, or rounded to e4m3 at twice the rate"),
       number_knob("operand", &Config::operand), number_knob("output", &Config::output),
       activation_knob("activation", &Config::activation),
       range("math_warpgroups", &Config::math_warpgroups, 1, 7, 1, "warpgroups that multiply, 32 outputs each"),
       number("block_tokens", &Config::block_tokens, {8, 16, 32, 64, 128, 256}, "tokens of a tile"),
       number("blocks_per_slot", &Config::blocks_per_slot, {1, 2, 4},
              "blocks of weights along K in a slot of the ring: of 64 elements (exact) or 128 (fast)"),
       range("stages", &Config::stages, 1, 16, 1, "slots of the ring"),
       number("split_k", &Config::split_k, {1, 2}, "blocks that share a tile's K and add up"),
       range("blocks_resident", &Config::blocks_resident, 1, 8, 1, "blocks meant to share a multiprocessor"),
       overlap_knob(),
       registers_knob("loader_registers", &Config::loader_registers, "of a loading thread; 0: as launched"),
       registers_knob("math_registers", &Config::math_registers, "of a multiplying thread; 0: as launched"),
       from_problem(flag("profiled", &Config::profiled, "")), ablation_knob("ablation", &Config::ablation),
       of_launch(flag("dependent_launch", &Config::dependent_launch, "starts before the launch ahead has ended"))}};
  return table;
}

std::string kernel_name(const Config& config) {
  return fmt::format("{}kernel<{}>", room, knob_table().spelling(config));
}

DeviceProgram program(const Config& config) {
  return {.title = fmt::format("dual_gemm packed{}, {} outputs x {} tokens, split {}",
                               config.numerics == Numerics::fast ? " fast" : "", tile_outputs(config),
                               config.block_tokens, config.split_k),
          .text = "#include \"strategies/dual_gemm/packed/device/kernel.hpp\"\n",
          .kernels = {kernel_name(config)},
          .options = {},
          .only_arch = Arch::sm_90a};
}

int shared_bytes(const Config& config) { return pipeline::shared_bytes(shape_of(config)); }
int launch_threads(const Config& config) { return pipeline::threads(shape_of(config)); }

}  // namespace thresher::strategies::dual_gemm::packed
