#include "kernels/dual_gemm/host/emulated.hpp"

#include <array>

#include "kernels/dual_gemm/kernel.hpp"
#include "kernels/dual_gemm/program.hpp"
#include "machine/emulator/engine/tensor_map.hpp"
#include "thresher/error.hpp"

namespace thresher::kernels::dual_gemm {
namespace {

/// Small tiles of every strategy, so that a problem of a few hundred rows has many of them; each knob is set somewhere.
constexpr std::array configs{
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

using Kernel = void (*)(const Params);

template <std::size_t... index>
constexpr std::array<Kernel, sizeof...(index)> instantiate(std::index_sequence<index...>) {
  return {&kernel<configs[index]>...};
}

constexpr auto kernels = instantiate(std::make_index_sequence<configs.size()>());

/// A few multiprocessors: persistent blocks take several tiles.
constexpr int multiprocessors = 3;

}  // namespace

std::span<const Config> emulated_configs() { return configs; }

emulator::Report emulate(const Config& config, const EmulatedProblem& problem, const emulator::GlobalMemory& memory,
                         const emulator::Options& options) {
  const auto found = std::find(configs.begin(), configs.end(), config);
  if (found == configs.end()) {
    throw Error(ErrorCode::unsupported, title(config) + " is not compiled into this build for emulation");
  }
  const Geometry launched = geometry(config, problem.extents, multiprocessors);
  Params params = scalars(config, problem.extents, problem.c, launched, problem.activation);
  params.tokens = emulator::encode_tensor_map(tokens_map(config, problem.extents, problem.a));
  params.gate = emulator::encode_tensor_map(weights_map(config, problem.extents, problem.b1_gate));
  params.up = emulator::encode_tensor_map(weights_map(config, problem.extents, problem.b2_up));
  if (config.epilogue == Epilogue::tma) {
    params.output = emulator::encode_tensor_map(output_map(config, problem.extents, problem.c));
  }
  emulator::LaunchShape shape;
  shape.grid.x = launched.blocks;
  shape.block = launched.threads;
  shape.cluster.x = launched.cluster_blocks;
  shape.dynamic_shared_bytes = launched.shared_bytes;
  const Kernel run = kernels[static_cast<std::size_t>(found - configs.begin())];
  return emulator::launch(shape, options, memory, [&] { run(params); });
}

}  // namespace thresher::kernels::dual_gemm
