#include "strategies/grouped_gemm/tcgen05/program.hpp"

#include <fmt/format.h>

#include "strategies/gemm/common_knobs.hpp"

namespace thresher::strategies::grouped_gemm::tcgen05 {
namespace {

constexpr const char* room = "thresher::strategies::grouped_gemm::tcgen05::";

}  // namespace

const KnobTable<Config>& knob_table() {
  static const KnobTable<Config> table{
      "thresher::strategies::grouped_gemm::tcgen05::Config",
      {dual_gemm::number_knob("output", &Config::output),
       from_problem(number("matrices", &Config::matrices, {1, 2}, "")),
       dual_gemm::activation_knob("activation", &Config::activation), from_problem(flag("bias", &Config::bias, "")),
       from_problem(flag("row_weights", &Config::row_weights, "")),
       from_problem(flag("gathered", &Config::gathered, "")),
       number("blocks", &Config::blocks, {1, 2}, "blocks that share a product"),
       number("block_tokens", &Config::block_tokens, {16, 32, 64, 96, 128, 160, 192}, "the most tokens of a tile"),
       number("token_step", &Config::token_step, {16, 32, 64}, "between widths of more than 64 columns"),
       range("stages", &Config::stages, 1, 16, 1, "slots of the ring, 256 along K each"),
       number("split_k", &Config::split_k, {1, 2}, "products of a cluster that share a tile's K and add up"),
       from_problem(flag("profiled", &Config::profiled, "")),
       of_launch(flag("dependent_launch", &Config::dependent_launch, "starts before the launch ahead has ended"))}};
  return table;
}

std::string kernel_expression(const Config& config) {
  return fmt::format("{}kernel<{}>", room, knob_table().spelling(config));
}

DeviceProgram program(const Config& config) {
  return {.title = fmt::format("grouped_gemm tcgen05, {} outputs x {} tokens, split {}", tile_outputs(config),
                               config.block_tokens, config.split_k),
          .text = "#include \"strategies/grouped_gemm/tcgen05/device/kernel.hpp\"\n",
          .kernels = {kernel_expression(config)},
          .options = {},
          .only_arch = Arch::sm_100f};
}

DeviceProgram packing_program() {
  return {.title = "grouped_gemm packing for tensor memory",
          .text = "#include \"strategies/grouped_gemm/tcgen05/device/pack.hpp\"\n",
          .kernels = {pack_kernel_name(1), pack_kernel_name(2)},
          .options = {}};
}

std::string pack_kernel_name(int matrices) { return fmt::format("{}pack_experts_kernel<{}>", room, matrices); }

DeviceProgram preparation_program(const Config& config) {
  return {.title = "grouped_gemm preparation for tensor memory",
          .text = "#include \"strategies/grouped_gemm/tcgen05/device/prepare_rows.hpp\"\n",
          .kernels = {prepare_kernel_name(config)},
          .options = {}};
}

std::string prepare_kernel_name(const Config& config) {
  const pipeline::TileWidths tile_widths = tile_widths_of(config);
  return fmt::format("{}prepare_rows_kernel<thresher::pipeline::TileWidths{{{}, {}, {}}}, {}>", room, tile_widths.least,
                     tile_widths.most, tile_widths.step, config.gathered);
}

}  // namespace thresher::strategies::grouped_gemm::tcgen05
