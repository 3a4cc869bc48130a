#include "strategies/dual_gemm/fused/program.hpp"

#include <fmt/format.h>

#include "strategies/dual_gemm/common_knobs.hpp"
#include "strategies/dual_gemm/formats.hpp"

namespace thresher::strategies::dual_gemm::fused {
namespace {

Knob<Config> order_knob() {
  return from_problem(choice<Config, Order>(
      "order", &Config::order, "thresher::strategies::dual_gemm::fused::Order",
      {{"sequential", Order::sequential}, {"interleaved", Order::interleaved}, {"pingpong", Order::pingpong}}, ""));
}

Knob<Config> epilogue_knob() {
  return choice<Config, Epilogue>("epilogue", &Config::epilogue, "thresher::strategies::dual_gemm::fused::Epilogue",
                                  {{"simt", Epilogue::simt}, {"tma", Epilogue::tma}},
                                  "outputs are stored by threads, or staged for the copy engine");
}

Knob<Config> raster_knob() {
  return choice<Config, Raster>("raster", &Config::raster, "thresher::pipeline::Raster",
                                {{"rows_first", Raster::rows_first}, {"columns_first", Raster::columns_first}},
                                "which tiles follow one another: those of the same weights, or of the same tokens");
}

std::string title(const Config& c) {
  return fmt::format("dual_gemm {} {} to {}, {} tokens x {} outputs x {} of k, {} stages", name(c.order),
                     thresher::name(format_of(c.operand)), thresher::name(format_of(c.output)), block_tokens(c),
                     c.block_outputs, c.block_k, c.stages);
}

}  // namespace

std::string_view name(Order order) {
  switch (order) {
    case Order::sequential: return "sequential";
    case Order::interleaved: return "interleaved";
    case Order::pingpong: break;
  }
  return "pingpong";
}

const KnobTable<Config>& knob_table() {
  static const KnobTable<Config> table{
      "thresher::strategies::dual_gemm::fused::Config",
      {order_knob(), number_knob("operand", &Config::operand), number_knob("output", &Config::output),
       activation_knob("activation", &Config::activation),
       range("warpgroup_tiles", &Config::warpgroup_tiles, 1, 8, 1, "64-token tiles of each math warpgroup"),
       range("math_warpgroups", &Config::math_warpgroups, 1, 7, 1, "warpgroups that multiply"),
       range("block_outputs", &Config::block_outputs, 8, 256, 8, "columns of C in a tile"),
       range("block_k", &Config::block_k, 64, 512, 64, "elements along K in a slot of the ring"),
       range("stages", &Config::stages, 1, 16, 1, "slots of the ring"),
       number("multicast", &Config::multicast, {1, 2, 4, 8, 16}, "blocks of a cluster that share weights"),
       number("split_k", &Config::split_k, {1, 2, 4}, "blocks that share a tile's K and add up"), epilogue_knob(),
       raster_knob(), flag("persistent", &Config::persistent, "a block takes tile after tile"),
       registers_knob("loader_registers", &Config::loader_registers, "of a loading thread; 0: as launched"),
       registers_knob("math_registers", &Config::math_registers, "of a multiplying thread; 0: as launched"),
       from_problem(flag("profiled", &Config::profiled, "")), ablation_knob("ablation", &Config::ablation),
       of_launch(flag("dependent_launch", &Config::dependent_launch, "starts before the launch ahead has ended"))}};
  return table;
}

std::string kernel_expression(const Config& config) {
  return fmt::format("thresher::strategies::dual_gemm::fused::kernel<{}>", knob_table().spelling(config));
}

DeviceProgram program(const Config& config) {
  return {.title = title(config),
          .text = "#include \"strategies/dual_gemm/fused/device/kernel.hpp\"\n",
          .kernels = {kernel_expression(config)},
          .options = {},
          .only_arch = Arch::sm_90a};
}

}  // namespace thresher::strategies::dual_gemm::fused
