#include "strategies/dual_gemm/fused/host/emulated.hpp"

#include <array>

#include "machine/emulator/engine/tensor_map.hpp"
#include "strategies/dual_gemm/fused/host/defaults.hpp"
#include "strategies/dual_gemm/fused/kernel.hpp"
#include "strategies/dual_gemm/fused/program.hpp"

namespace thresher::strategies::dual_gemm::fused {
namespace {

constexpr std::array small{
    Config{.block_outputs = 64, .stages = 4, .epilogue = Epilogue::tma},
    Config{.operand = Number::fp16, .output = Number::fp16, .math_warpgroups = 1, .block_outputs = 24, .stages = 3},
    Config{.output = Number::fp32, .block_outputs = 48, .stages = 2, .multicast = 2},
    Config{.operand = Number::fp16,
           .output = Number::fp16,
           .block_outputs = 32,
           .stages = 4,
           .split_k = 2,
           .epilogue = Epilogue::tma},
    Config{.warpgroup_tiles = 2, .block_outputs = 16, .block_k = 128, .stages = 2, .persistent = true},
    Config{.strategy = Strategy::sequential, .block_outputs = 40, .stages = 1},
    Config{.strategy = Strategy::sequential,
           .operand = Number::fp16,
           .output = Number::fp16,
           .activation = ActivationCode::gelu_tanh,
           .block_outputs = 64,
           .stages = 3,
           .multicast = 2,
           .epilogue = Epilogue::tma},
    Config{.strategy = Strategy::pingpong,
           .block_outputs = 32,
           .stages = 3,
           .epilogue = Epilogue::tma,
           .persistent = true,
           .loader_registers = 40,
           .math_registers = 232},
    Config{.strategy = Strategy::pingpong,
           .operand = Number::fp16,
           .output = Number::fp16,
           .activation = ActivationCode::swiglu_clamped,
           .warpgroup_tiles = 2,
           .block_outputs = 24,
           .stages = 4,
           .raster = Raster::columns_first,
           .persistent = true},
};

constexpr Config profile(pipeline::Ablation ablation, Epilogue epilogue) {
  return {.block_outputs = 32, .stages = 3, .epilogue = epilogue, .profiled = true, .ablation = ablation};
}

constexpr std::array profiles{
    profile(pipeline::Ablation::none, Epilogue::simt),
    profile(pipeline::Ablation::no_epilogue, Epilogue::tma),
    // Not with the copy engine, whose two stores of the same values nothing would order.
    profile(pipeline::Ablation::epilogue_twice, Epilogue::simt),
    profile(pipeline::Ablation::loads_only, Epilogue::simt),
    profile(pipeline::Ablation::products_only, Epilogue::simt),
};

/// What the planner chooses for the origin's shapes in bf16 on an H200 when it is asked for one of the other
/// strategies.
constexpr Config sequential(int block_outputs, int stages, int split_k) {
  return {.strategy = Strategy::sequential,
          .block_outputs = block_outputs,
          .stages = stages,
          .split_k = split_k,
          .epilogue = Epilogue::tma};
}
constexpr Config pingpong(int warpgroup_tiles, int block_outputs, int stages, bool hands_over) {
  return {.strategy = Strategy::pingpong,
          .warpgroup_tiles = warpgroup_tiles,
          .block_outputs = block_outputs,
          .stages = stages,
          .epilogue = Epilogue::tma,
          .persistent = true,
          .loader_registers = hands_over ? 40 : 0,
          .math_registers = hands_over ? 232 : 0};
}
constexpr std::array others{sequential(128, 7, 2),   sequential(128, 7, 1),     sequential(96, 8, 2),
                            sequential(96, 8, 1),    pingpong(2, 64, 6, false), pingpong(2, 48, 7, false),
                            pingpong(4, 48, 4, true)};

template <const auto& configs, std::size_t... index>
void add(std::vector<CompiledIn>& kernels, std::index_sequence<index...>) {
  (kernels.push_back({kernel_expression(configs[index]), &host_kernel<&kernel<configs[index]>>}), ...);
}

/// A few multiprocessors: persistent blocks take several tiles.
constexpr int multiprocessors = 3;

}  // namespace

std::span<const Config> small_configs() { return small; }
std::span<const Config> profiled_configs() { return profiles; }

std::vector<CompiledIn> compiled_in() {
  std::vector<CompiledIn> kernels;
  add<small>(kernels, std::make_index_sequence<small.size()>());
  add<others>(kernels, std::make_index_sequence<others.size()>());
  add<profiles>(kernels, std::make_index_sequence<profiles.size()>());
  add<default_config_list>(kernels, std::make_index_sequence<default_config_list.size()>());
  return kernels;
}

emulator::Report emulate(HostKernel kernel, const Config& config, const EmulatedProblem& problem,
                         const emulator::GlobalMemory& memory, const emulator::Options& options) {
  const Geometry launched = geometry(config, problem.extents, multiprocessors);
  Params params = scalars(config, problem.extents, problem.c, launched, problem.activation);
  params.tokens = emulator::encode_tensor_map(tokens_map(config, problem.extents, problem.a));
  params.gate = emulator::encode_tensor_map(weights_map(config, problem.extents, problem.b1_gate));
  params.up = emulator::encode_tensor_map(weights_map(config, problem.extents, problem.b2_up));
  if (config.epilogue == Epilogue::tma) {
    params.output = emulator::encode_tensor_map(output_map(config, problem.extents, problem.c));
  }
  params.profile = {problem.profile.address};
  emulator::LaunchShape shape;
  shape.grid.x = launched.blocks;
  shape.block = launched.threads;
  shape.cluster.x = launched.cluster_blocks;
  shape.dynamic_shared_bytes = launched.shared_bytes;
  return emulator::launch(shape, options, memory, [&] { kernel(&params); });
}

}  // namespace thresher::strategies::dual_gemm::fused
