#include "strategies/grouped_gemm/packed/program.hpp"

#include <fmt/format.h>

#include "strategies/gemm/common_knobs.hpp"

namespace thresher::strategies::grouped_gemm::packed {
namespace {

constexpr const char* room = "thresher::strategies::grouped_gemm::packed::";

std::string packing_kernel(const char* packing, int matrices) {
  return fmt::format("{0}pack_experts_kernel<{0}Packing::{1}, {2}>", room, packing, matrices);
}

}  // namespace

const KnobTable<Config>& knob_table() {
  static const KnobTable<Config> table{
      "thresher::strategies::grouped_gemm::packed::Config",
      {dual_gemm::numerics_knob("numerics", &Config::numerics,
                                "value x scale enters the matrix unit exactly, or rounded to e4m3 at twice the rate"),
       dual_gemm::number_knob("operand", &Config::operand),
       dual_gemm::number_knob("output", &Config::output),
       from_problem(number("matrices", &Config::matrices, {1, 2}, "")),
       dual_gemm::activation_knob("activation", &Config::activation),
       from_problem(flag("bias", &Config::bias, "")),
       from_problem(flag("row_weights", &Config::row_weights, "")),
       from_problem(flag("gathered", &Config::gathered, "")),
       range("math_warpgroups", &Config::math_warpgroups, 1, 7, 1, "warpgroups that multiply, 64 rows of weights each"),
       number("least_tokens", &Config::least_tokens, {8, 16, 32, 64, 128}, "columns of a tile at the least"),
       number("block_tokens", &Config::block_tokens, {8, 16, 32, 64, 96, 128, 160, 192, 256},
              "the most tokens of a tile"),
       number("token_step", &Config::token_step, {0, 16, 32, 64},
              "between widths of more than 64 columns; 0: each is twice the one below"),
       number("blocks_per_slot", &Config::blocks_per_slot, {1, 2, 4},
              "blocks of weights along K in a slot of the ring: of 64 elements (exact) or 128 (fast)"),
       range("stages", &Config::stages, 1, 16, 1, "slots of the ring"),
       range("blocks_resident", &Config::blocks_resident, 1, 4, 1, "blocks meant to share a multiprocessor"),
       choice<Config, Overlap>(
           "overlap", &Config::overlap, "thresher::pipeline::Overlap",
           {{"step", Overlap::step}, {"block", Overlap::block}, {"none", Overlap::none}},
           "the next fragments are made between steps, while a whole block is multiplied, or after it"),
       dual_gemm::registers_knob("loader_registers", &Config::loader_registers, "of a loading thread; 0: as launched"),
       dual_gemm::registers_knob("math_registers", &Config::math_registers, "of a multiplying thread; 0: as launched"),
       from_problem(flag("profiled", &Config::profiled, "")),
       of_launch(flag("dependent_launch", &Config::dependent_launch, "starts before the launch ahead has ended"))}};
  return table;
}

std::string kernel_expression(const Config& config) {
  return fmt::format("{}kernel<{}>", room, knob_table().spelling(config));
}

DeviceProgram program(const Config& config) {
  return {
      .title = fmt::format("grouped_gemm packed{}, {} outputs x {} tokens",
                           config.numerics == Numerics::fast ? " fast" : "", tile_outputs(config), config.block_tokens),
      .text = "#include \"strategies/grouped_gemm/packed/device/kernel.hpp\"\n",
      .kernels = {kernel_expression(config)},
      .options = {},
      .only_arch = Arch::sm_90a};
}

DeviceProgram packing_program() {
  DeviceProgram program{.title = "grouped_gemm packing",
                        .text = "#include \"strategies/grouped_gemm/packed/device/pack.hpp\"\n",
                        .kernels = {},
                        .options = {}};
  for (const int matrices : {1, 2}) {
    program.kernels.push_back(pack_kernel_name(Numerics::exact, matrices));
    program.kernels.push_back(pack_kernel_name(Numerics::fast, matrices));
    program.kernels.push_back(row_factors_kernel_name(matrices));
  }
  return program;
}

std::string pack_kernel_name(Numerics numerics, int matrices) {
  return packing_kernel(numerics == Numerics::fast ? "fast" : "exact", matrices);
}
std::string row_factors_kernel_name(int matrices) { return packing_kernel("factors", matrices); }

}  // namespace thresher::strategies::grouped_gemm::packed
