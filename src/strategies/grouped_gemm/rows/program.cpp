#include "strategies/grouped_gemm/rows/program.hpp"

#include <fmt/format.h>

#include "strategies/dual_gemm/common_knobs.hpp"
#include "strategies/grouped_gemm/host/plain_words.hpp"

namespace thresher::strategies::grouped_gemm::rows {

const KnobTable<Config>& knob_table() {
  static const KnobTable<Config> table{
      "thresher::strategies::grouped_gemm::rows::Config",
      {dual_gemm::numerics_knob("numerics", &Config::numerics,
                                "sums of FP8 are promoted to float32, or left to the matrix unit, which keeps 14 bits"),
       dual_gemm::number_knob("operand", &Config::operand),
       dual_gemm::scaling_knob("token_scaling", &Config::token_scaling),
       dual_gemm::scaling_knob("weight_scaling", &Config::weight_scaling),
       dual_gemm::number_knob("output", &Config::output),
       dual_gemm::scaling_knob("output_scaling", &Config::output_scaling),
       from_problem(number("matrices", &Config::matrices, {1, 2}, "")),
       dual_gemm::activation_knob("activation", &Config::activation),
       from_problem(flag("bias", &Config::bias, "")),
       from_problem(flag("row_weights", &Config::row_weights, "")),
       from_problem(flag("gathered", &Config::gathered, "")),
       range("math_warpgroups", &Config::math_warpgroups, 2, 3, 1, "warpgroups that multiply"),
       flag("by_turns", &Config::by_turns, "each math warpgroup takes tiles of its own; else all share each"),
       range("block_tokens", &Config::block_tokens, 64, 256, 64, "the most tokens of a tile"),
       range("block_outputs", &Config::block_outputs, 8, 128, 8, "outputs of a tile; of one matrix half of them"),
       number("block_k", &Config::block_k, {32, 64, 128, 192, 256}, "elements along K in a slot of the ring"),
       range("stages", &Config::stages, 2, 16, 1, "slots of the ring"),
       dual_gemm::registers_knob("loader_registers", &Config::loader_registers, "of a loading thread; 0: as launched"),
       dual_gemm::registers_knob("math_registers", &Config::math_registers, "of a multiplying thread; 0: as launched"),
       from_problem(flag("profiled", &Config::profiled, "")),
       of_launch(flag("dependent_launch", &Config::dependent_launch, "starts before the launch ahead has ended"))}};
  return table;
}

std::string kernel_expression(const Config& config) {
  return fmt::format("thresher::strategies::grouped_gemm::rows::kernel<{}>", knob_table().spelling(config));
}

DeviceProgram program(const Config& config) {
  return {.title = fmt::format("grouped_gemm rows{}, {} tokens x {} outputs x {} of k, {} stages",
                               number_words(config.operand, config.numerics), config.block_tokens, tile_outputs(config),
                               config.block_k, config.stages),
          .text = "#include \"strategies/grouped_gemm/rows/device/kernel.hpp\"\n",
          .kernels = {kernel_expression(config)},
          .options = {},
          .only_arch = Arch::sm_90a};
}

}  // namespace thresher::strategies::grouped_gemm::rows
