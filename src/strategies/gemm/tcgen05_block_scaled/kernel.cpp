#include "strategies/gemm/tcgen05_block_scaled/kernel.hpp"

#include <fmt/format.h>

#include "strategies/gemm/tcgen05_family.hpp"

namespace thresher::strategies::gemm::tcgen05_block_scaled {
namespace {

constexpr const char* room = "thresher::strategies::gemm::tcgen05_block_scaled::";
constexpr const char* preparation_text = "#include \"strategies/gemm/tcgen05_block_scaled/device/prepare.hpp\"\n";

}  // namespace

const KnobTable<Config>& knob_table() {
  static const KnobTable<Config> table{
      "thresher::strategies::gemm::tcgen05_block_scaled::Config",
      tensor_knobs<Config>(
          {only_where<Config>([](const Config& config) { return config.dense; },
                              flag("unsigned_scales", &Config::unsigned_scales,
                                   "dense: token scales have no signs, and blocked ones are read where they lie; a "
                                   "sign makes its tile NaN"))},
          "stage buffers, 256 along K each")};
  return table;
}

std::string kernel_name(const Config& config) {
  return fmt::format("{}kernel<{}>", room, knob_table().spelling(config));
}

DeviceProgram program(const Config& config) {
  return tensor_program(config, "tcgen05", "tcgen05_block_scaled", kernel_name(config));
}

DeviceProgram packing_program(bool dense) {
  return {.title = dense ? "nvfp4 preparation for tensor memory" : "grouped_gemm packing for tensor memory",
          .text = preparation_text,
          .kernels = dense ? std::vector{pack_kernel_name(true, 2), prepare_kernel_name({.dense = true})}
                           : std::vector{pack_kernel_name(false, 1), pack_kernel_name(false, 2)},
          .options = {}};
}

std::string pack_kernel_name(bool dense, int matrices) {
  return dense ? fmt::format("{}pack_kernel", room) : fmt::format("{}pack_experts_kernel<{}>", room, matrices);
}

DeviceProgram preparation_program(const Config& config) {
  if (config.dense) {
    return packing_program(true);
  }
  return {.title = "grouped_gemm preparation for tensor memory",
          .text = preparation_text,
          .kernels = {prepare_kernel_name(config)},
          .options = {}};
}

std::string prepare_kernel_name(const Config& config) {
  if (config.dense) {
    return fmt::format("{}prepare_tokens_kernel", room);
  }
  const pipeline::TileWidths tile_widths = tile_widths_of(config);
  return fmt::format("{}prepare_rows_kernel<thresher::pipeline::TileWidths{{{}, {}, {}}}, {}>", room, tile_widths.least,
                     tile_widths.most, tile_widths.step, config.gathered);
}

}  // namespace thresher::strategies::gemm::tcgen05_block_scaled
