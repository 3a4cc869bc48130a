#include "strategies/dual_gemm/tcgen05_plain/program.hpp"

#include <fmt/format.h>

#include "strategies/dual_gemm/tcgen05_plain/candidates.hpp"
#include "strategies/gemm/common_knobs.hpp"

namespace thresher::strategies::dual_gemm::tcgen05_plain {

const KnobTable<Config>& knob_table() {
  static const KnobTable<Config> table{
      "thresher::strategies::dual_gemm::tcgen05_plain::Config",
      {number_knob("operand", &Config::operand), scaling_knob("token_scaling", &Config::token_scaling),
       scaling_knob("weight_scaling", &Config::weight_scaling), number_knob("output", &Config::output),
       activation_knob("activation", &Config::activation),
       number("blocks", &Config::blocks, {1, 2}, "blocks that share a product"),
       range("block_tokens", &Config::block_tokens, token_granule, max_tokens, token_granule, "tokens of a tile"),
       range("stages", &Config::stages, 1, max_stages, 1, "slots of the ring, 128 bytes along K each"),
       number("split_k", &Config::split_k, {1, 2}, "products of a cluster that share a tile's K and add up"),
       flag("persistent", &Config::persistent,
            "blocks take tile after tile, finishing one while they multiply the next"),
       from_problem(flag("profiled", &Config::profiled, "")), ablation_knob("ablation", &Config::ablation),
       of_launch(flag("dependent_launch", &Config::dependent_launch, "starts before the launch ahead has ended"))}};
  return table;
}

std::string kernel_name(const Config& config) {
  return fmt::format("thresher::strategies::dual_gemm::tcgen05_plain::kernel<{}>", knob_table().spelling(config));
}

DeviceProgram program(const Config& config) {
  return {.title = fmt::format("dual_gemm tcgen05_plain, {} outputs x {} tokens, split {}", tile_outputs(config),
                               config.block_tokens, config.split_k),
          .text = "#include \"strategies/dual_gemm/tcgen05_plain/device/kernel.hpp\"\n",
          .kernels = {kernel_name(config)},
          .options = {},
          .only_arch = Arch::sm_100f};
}

}  // namespace thresher::strategies::dual_gemm::tcgen05_plain
