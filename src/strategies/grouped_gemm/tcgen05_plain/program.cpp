#include "strategies/grouped_gemm/tcgen05_plain/program.hpp"

#include <fmt/format.h>

#include "strategies/gemm/common_knobs.hpp"
#include "strategies/grouped_gemm/tcgen05_plain/candidates.hpp"

namespace thresher::strategies::grouped_gemm::tcgen05_plain {

const KnobTable<Config>& knob_table() {
  static const KnobTable<Config> table{
      "thresher::strategies::grouped_gemm::tcgen05_plain::Config",
      {dual_gemm::number_knob("operand", &Config::operand),
       dual_gemm::scaling_knob("token_scaling", &Config::token_scaling),
       dual_gemm::scaling_knob("weight_scaling", &Config::weight_scaling),
       dual_gemm::number_knob("output", &Config::output),
       from_problem(number("matrices", &Config::matrices, {1, 2}, "")),
       dual_gemm::activation_knob("activation", &Config::activation), from_problem(flag("bias", &Config::bias, "")),
       from_problem(flag("row_weights", &Config::row_weights, "")),
       from_problem(flag("gathered", &Config::gathered, "")),
       number("blocks", &Config::blocks, {1, 2}, "blocks that share a product"),
       number("block_tokens", &Config::block_tokens, {16, 32, 64, 96, 128, 160, 192, 224, 256},
              "the most tokens of a tile"),
       number("token_step", &Config::token_step, {16, 32, 64}, "between widths of more than 64 columns"),
       range("stages", &Config::stages, 1, max_stages, 1, "slots of the ring, 128 bytes along K each"),
       number("split_k", &Config::split_k, {1, 2}, "products of a cluster that share a tile's K and add up"),
       from_problem(flag("profiled", &Config::profiled, "")),
       of_launch(flag("dependent_launch", &Config::dependent_launch, "starts before the launch ahead has ended"))}};
  return table;
}

std::string kernel_expression(const Config& config) {
  return fmt::format("thresher::strategies::grouped_gemm::tcgen05_plain::kernel<{}>", knob_table().spelling(config));
}

DeviceProgram program(const Config& config) {
  return {.title = fmt::format("grouped_gemm tcgen05_plain, {} outputs x {} tokens, split {}", tile_outputs(config),
                               config.block_tokens, config.split_k),
          .text = "#include \"strategies/grouped_gemm/tcgen05_plain/device/kernel.hpp\"\n",
          .kernels = {kernel_expression(config)},
          .options = {},
          .only_arch = Arch::sm_100f};
}

}  // namespace thresher::strategies::grouped_gemm::tcgen05_plain
