#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "core/integers.hpp"
#include "pipeline/staging.hpp"
#include "strategies/gemm/call.hpp"
#include "strategies/gemm/common_knobs.hpp"
#include "strategies/gemm/formats.hpp"
#include "strategies/gemm/tensors.hpp"
#include "strategies/gemm/wgmma/fused/kernel.hpp"
#include "strategies/gemm/wgmma/fused/params.hpp"

namespace thresher::strategies::gemm::fused {
namespace {

constexpr std::int64_t max_tma_box_rows = 256;

Knob<Config> order_knob() {
  return from_problem(choice<Config, Order>(
      "order", &Config::order, "thresher::strategies::gemm::fused::Order",
      {{"sequential", Order::sequential}, {"interleaved", Order::interleaved}, {"pingpong", Order::pingpong}}, ""));
}

Knob<Config> epilogue_knob() {
  return choice<Config, Epilogue>("epilogue", &Config::epilogue, "thresher::strategies::gemm::fused::Epilogue",
                                  {{"simt", Epilogue::simt}, {"tma", Epilogue::tma}},
                                  "outputs are stored by threads, or staged for TMA");
}

Knob<Config> raster_knob() {
  return choice<Config, Raster>("raster", &Config::raster, "thresher::pipeline::Raster",
                                {{"rows_first", Raster::rows_first}, {"columns_first", Raster::columns_first}},
                                "which tiles follow one another: those of the same weights, or of the same tokens");
}

std::string title(const Config& c) {
  return fmt::format("{} {} {} to {}, {} tokens x {} outputs x {} of k, {} stages",
                     c.matrices == 2 ? "dual_gemm" : "gemm", name(c.order), thresher::name(format_of(c.operand)),
                     thresher::name(format_of(c.output)), block_tokens(c), c.block_outputs, c.block_k, c.stages);
}

machine::TensorMapDescription weights_map(const Config& config, const Tensor& weights) {
  return matrix_map(weights, {static_cast<std::uint32_t>(piece_rows(config)), panel_k, machine::Swizzle::b128});
}

machine::TensorMapDescription output_map(const Config& config, const Tensor& c) {
  const int panel = pipeline::staging_panel_columns(finished_columns(config));
  return matrix_map(c, {64, static_cast<std::uint32_t>(panel), pipeline::staging_swizzle(panel)});
}

/// Everything but the tensor maps.
Params scalars(const Config& config, const ProductProblem& problem, const CallTensors& call) {
  const CallExtents extents = extents_of(call);
  Params params{};
  set_static_tiles(problem, call, block_tokens(config), config.block_outputs, params);
  params.k = narrow(extents.k);
  params.c_wide = allows_wide_stores(output_of(call)) ? 1 : 0;
  params.token_tiles = narrow(round_up(params.token_tiles, config.multicast));
  params.token_rows =
      narrow(std::min<std::int64_t>({round_up(extents.rows, 8), block_tokens(config), max_tma_box_rows}));
  params.bias = finish_params(problem, call).gate_bias;
  return params;
}

/// Returns false when TMA is to store an output that it cannot address.
bool bind(const Config& config, const ProductProblem& problem, const CallTensors& call, LaunchArguments& out) {
  const Params params = scalars(config, problem, call);
  if (config.epilogue == Epilogue::tma && params.c_wide == 0) {
    return false;
  }
  out.set(params);
  // A block for each tile, or for each half of one that splits K.
  out.grid.x = params.token_tiles * params.output_tiles * static_cast<std::uint32_t>(config.split_k);
  out.add_map(offsetof(Params, tokens),
              matrix_map(tokens_of(call), {params.token_rows, panel_k, machine::Swizzle::b128}));
  if (config.epilogue == Epilogue::tma) {
    out.add_map(offsetof(Params, output), output_map(config, output_of(call)));
  }
  return true;
}

std::vector<Access> accesses(const ProductProblem& problem, const Config& config) {
  std::vector<Access> all{{Access::Memory::tensor, tokens_index, Access::Use::depends_on_previous}};
  add_weight_reads(config.matrices, Access::Memory::tensor, all);
  add_common_accesses(problem, config.profiled, all);
  return all;
}

/// One slot of the ring: 64 tokens of a warpgroup and all rows of weights an instruction, 16 along K.
Expectations expectations(const Config& config) {
  Expectations expected;
  expected.matrix_kind = "HGMMA";
  expected.min_matrix_instructions = config.warpgroup_tiles * config.block_k / 16;
  expected.min_tma_loads = 1;
  expected.min_tma_stores = config.epilogue == Epilogue::tma ? 1 : 0;
  return expected;
}

KernelLaunch launch(const ProductProblem& problem, const Config& config) {
  const pipeline::Shape shape = shape_of(config);
  KernelLaunch launch = product_launch(program(config), shape, 1, pipeline::shared_bytes(shape));
  launch.dependent = config.dependent_launch;
  launch.accesses = accesses(problem, config);
  launch.bind = [config, problem](const CallTensors& call, LaunchArguments& out) {
    return bind(config, problem, call, out);
  };
  launch.bind_weights = [config](const CallTensors& call, LaunchArguments& out) {
    out.add_map(offsetof(Params, gate), weights_map(config, gate_of(call)));
    if (config.matrices == 2) {
      out.add_map(offsetof(Params, up), weights_map(config, up_of(call)));
    }
  };
  launch.expected = expectations(config);
  return launch;
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
      "thresher::strategies::gemm::fused::Config",
      {order_knob(),
       number_knob("operand", &Config::operand),
       number_knob("output", &Config::output),
       from_problem(number("matrices", &Config::matrices, {1, 2}, "")),
       activation_knob("activation", &Config::activation),
       from_problem(flag("bias", &Config::bias, "")),
       range("warpgroup_tiles", &Config::warpgroup_tiles, 1, 8, 1, "64-token tiles of each consumer warpgroup"),
       range("math_warpgroups", &Config::math_warpgroups, 1, 7, 1, "warpgroups that multiply"),
       range("block_outputs", &Config::block_outputs, 8, 256, 8, "columns of C in a tile"),
       range("block_k", &Config::block_k, 64, 512, 64, "elements along K of a stage"),
       range("stages", &Config::stages, 1, 16, 1, "stage buffers"),
       number("multicast", &Config::multicast, {1, 2, 4, 8, 16}, "blocks of a cluster that share weights"),
       number("split_k", &Config::split_k, {1, 2, 4}, "blocks that share a tile's K and add up"),
       epilogue_knob(),
       raster_knob(),
       flag("persistent", &Config::persistent, "a block takes tile after tile"),
       registers_knob("loader_registers", &Config::loader_registers, "of a producer thread; 0: as launched"),
       registers_knob("math_registers", &Config::math_registers, "of a consumer thread; 0: as launched"),
       from_problem(flag("profiled", &Config::profiled, "")),
       ablation_knob("ablation", &Config::ablation),
       of_launch(flag("dependent_launch", &Config::dependent_launch, "starts before the launch ahead has ended"))}};
  return table;
}

std::string kernel_expression(const Config& config) {
  return fmt::format("thresher::strategies::gemm::fused::kernel<{}>", knob_table().spelling(config));
}

DeviceProgram program(const Config& config) {
  return {.title = title(config),
          .text = "#include \"strategies/gemm/wgmma/fused/device/operation.hpp\"\n",
          .kernels = {kernel_expression(config)},
          .options = {},
          .only_arch = Arch::sm_90a};
}

PlannedCall planned_call(const ProductProblem& problem, const Config& config) {
  PlannedCall call;
  KernelLaunch multiply = launch(problem, config);
  if (config.epilogue == Epilogue::tma) {
    Config direct = config;
    direct.epilogue = Epilogue::simt;
    multiply.alternative = std::make_shared<const KernelLaunch>(launch(problem, direct));
  }
  call.steps.emplace_back(std::move(multiply));
  read_in_place(call);
  return call;
}

}  // namespace thresher::strategies::gemm::fused
