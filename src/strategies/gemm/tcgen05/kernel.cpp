#include "strategies/gemm/tcgen05/kernel.hpp"

#include <fmt/format.h>

#include "strategies/gemm/common_knobs.hpp"
#include "strategies/gemm/tcgen05/tiles.hpp"

namespace thresher::strategies::gemm::tcgen05 {
namespace {

constexpr const char* room = "thresher::strategies::gemm::tcgen05::";

KnobTable<Config> make_table(bool is_nvfp4) {
  const auto dense = [](const Config& config) { return config.dense; };
  const auto grouped = [](const Config& config) { return !config.dense; };
  const Knob<Config> unsigned_scales =
      flag("unsigned_scales", &Config::unsigned_scales,
           "dense: token scales have no signs, and blocked ones are read where they lie; a sign makes its tile NaN");
  return {"thresher::strategies::gemm::tcgen05::Config",
          {from_problem(flag("nvfp4", &Config::nvfp4, "")),
           number_knob("operand", &Config::operand),
           scaling_knob("token_scaling", &Config::token_scaling),
           scaling_knob("weight_scaling", &Config::weight_scaling),
           is_nvfp4 ? only_where<Config>(dense, unsigned_scales) : from_problem(unsigned_scales),
           from_problem(flag("dense", &Config::dense, "")),
           number_knob("output", &Config::output),
           from_problem(number("matrices", &Config::matrices, {1, 2}, "")),
           activation_knob("activation", &Config::activation),
           from_problem(flag("bias", &Config::bias, "")),
           from_problem(flag("row_weights", &Config::row_weights, "")),
           from_problem(flag("gathered", &Config::gathered, "")),
           number("blocks", &Config::blocks, {1, 2}, "blocks that share a product"),
           range("block_tokens", &Config::block_tokens, 16, 256, 16, "tokens of a tile; of groups, at most"),
           only_where<Config>(grouped, number("token_step", &Config::token_step, {16, 32, 64},
                                              "of groups: between widths of more than 64 columns")),
           range("stages", &Config::stages, 1, max_stages, 1, "stage buffers, 128 bytes along K each"),
           number("split_k", &Config::split_k, {1, 2}, "products of a cluster that share a tile's K and add up"),
           only_where<Config>(dense,
                              flag("persistent", &Config::persistent,
                                   "dense: blocks take tile after tile, finishing one while they multiply the next")),
           from_problem(flag("profiled", &Config::profiled, "")),
           ablation_knob("ablation", &Config::ablation),
           of_launch(flag("dependent_launch", &Config::dependent_launch, "starts before the launch ahead has ended"))}};
}

std::string code(std::string_view header) {
  return fmt::format("#include \"strategies/gemm/tcgen05/device/{}.hpp\"\n", header);
}

}  // namespace

const KnobTable<Config>& knob_table(bool is_nvfp4) {
  static const KnobTable<Config> nvfp4 = make_table(true);
  static const KnobTable<Config> plain = make_table(false);
  return is_nvfp4 ? nvfp4 : plain;
}

std::string kernel_name(const Config& config) {
  return fmt::format("{}{}kernel<{}>", room, config.nvfp4 ? "block_scaled::" : "",
                     knob_table(config.nvfp4).spelling(config));
}

DeviceProgram program(const Config& config) {
  return {.title = fmt::format("{} {}, {} outputs x {} tokens, split {}", config.dense ? "dual_gemm" : "grouped_gemm",
                               config.nvfp4 ? "tcgen05" : "tcgen05_plain", tile_outputs(config), config.block_tokens,
                               config.split_k),
          .text = code(config.nvfp4 ? "block_scaled" : "plain"),
          .kernels = {kernel_name(config)},
          .options = {},
          .only_arch = Arch::sm_100f};
}

namespace block_scaled {

DeviceProgram packing_program(bool dense) {
  return {.title = dense ? "nvfp4 preparation for tensor memory" : "grouped_gemm packing for tensor memory",
          .text = code("prepare"),
          .kernels = dense ? std::vector{pack_kernel_name(true, 2), prepare_kernel_name({.dense = true})}
                           : std::vector{pack_kernel_name(false, 1), pack_kernel_name(false, 2)},
          .options = {}};
}

std::string pack_kernel_name(bool dense, int matrices) {
  return dense ? fmt::format("{}block_scaled::pack_kernel", room)
               : fmt::format("{}block_scaled::pack_experts_kernel<{}>", room, matrices);
}

DeviceProgram preparation_program(const Config& config) {
  if (config.dense) {
    return packing_program(true);
  }
  return {.title = "grouped_gemm preparation for tensor memory",
          .text = code("prepare"),
          .kernels = {prepare_kernel_name(config)},
          .options = {}};
}

std::string prepare_kernel_name(const Config& config) {
  if (config.dense) {
    return fmt::format("{}block_scaled::prepare_tokens_kernel", room);
  }
  const pipeline::TileWidths tile_widths = tile_widths_of(config);
  return fmt::format("{}block_scaled::prepare_rows_kernel<thresher::pipeline::TileWidths{{{}, {}, {}}}, {}>", room,
                     tile_widths.least, tile_widths.most, tile_widths.step, config.gathered);
}

}  // namespace block_scaled
}  // namespace thresher::strategies::gemm::tcgen05
