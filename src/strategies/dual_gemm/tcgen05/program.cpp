#include "strategies/dual_gemm/tcgen05/program.hpp"

#include <fmt/format.h>

#include "strategies/dual_gemm/tcgen05/candidates.hpp"
#include "strategies/gemm/common_knobs.hpp"

namespace thresher::strategies::dual_gemm::tcgen05 {
namespace {

constexpr const char* room = "thresher::strategies::dual_gemm::tcgen05::";

}  // namespace

DeviceProgram preparation_program() {
  return {.title = "nvfp4 preparation for tensor memory",
          .text =
              "#include \"strategies/dual_gemm/tcgen05/device/pack.hpp\"\n"
              "#include \"strategies/dual_gemm/tcgen05/device/prepare_tokens.hpp\"\n",
          .kernels = {pack_kernel_name(), prepare_tokens_kernel_name()},
          .options = {}};
}

std::string pack_kernel_name() { return std::string(room) + "pack_kernel"; }
std::string prepare_tokens_kernel_name() { return std::string(room) + "prepare_tokens_kernel"; }

const KnobTable<Config>& knob_table() {
  static const KnobTable<Config> table{
      "thresher::strategies::dual_gemm::tcgen05::Config",
      {number_knob("output", &Config::output), activation_knob("activation", &Config::activation),
       number("blocks", &Config::blocks, {1, 2}, "blocks that share a product"),
       range("block_tokens", &Config::block_tokens, token_granule, max_tokens, token_granule, "tokens of a tile"),
       range("stages", &Config::stages, 1, max_stages, 1, "slots of the ring, 256 along K each"),
       number("split_k", &Config::split_k, {1, 2}, "products of a cluster that share a tile's K and add up"),
       flag("persistent", &Config::persistent,
            "blocks take tile after tile, finishing one while they multiply the next"),
       flag("unsigned_scales", &Config::unsigned_scales,
            "token scales have no signs, and blocked ones are read where they lie; a sign makes its tile NaN"),
       from_problem(flag("profiled", &Config::profiled, "")), ablation_knob("ablation", &Config::ablation),
       of_launch(flag("dependent_launch", &Config::dependent_launch, "starts before the launch ahead has ended"))}};
  return table;
}

std::string kernel_name(const Config& config) {
  return fmt::format("{}kernel<{}>", room, knob_table().spelling(config));
}

DeviceProgram program(const Config& config) {
  return {.title = fmt::format("dual_gemm tcgen05, {} outputs x {} tokens, split {}", tile_outputs(config),
                               config.block_tokens, config.split_k),
          .text = "#include \"strategies/dual_gemm/tcgen05/device/kernel.hpp\"\n",
          .kernels = {kernel_name(config)},
          .options = {},
          .only_arch = Arch::sm_100f};
}

}  // namespace thresher::strategies::dual_gemm::tcgen05
