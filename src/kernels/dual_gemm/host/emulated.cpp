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

using Kernel = void (*)(const Params);

template <const auto& list, std::size_t... index>
constexpr std::array<Kernel, sizeof...(index)> instantiate(std::index_sequence<index...>) {
  return {&kernel<list[index]>...};
}

constexpr auto kernels = instantiate<configs>(std::make_index_sequence<configs.size()>());
constexpr auto profile_kernels = instantiate<profiles>(std::make_index_sequence<profiles.size()>());

/// Null when the kernel was not compiled in.
Kernel find_kernel(const Config& config) {
  const auto found = std::find(configs.begin(), configs.end(), config);
  if (found != configs.end()) {
    return kernels[static_cast<std::size_t>(found - configs.begin())];
  }
  const auto profiled = std::find(profiles.begin(), profiles.end(), config);
  return profiled == profiles.end() ? nullptr : profile_kernels[static_cast<std::size_t>(profiled - profiles.begin())];
}

/// A few multiprocessors: persistent blocks take several tiles.
constexpr int multiprocessors = 3;

}  // namespace

std::span<const Config> emulated_configs() { return configs; }
std::span<const Config> emulated_profiles() { return profiles; }

emulator::Report emulate(const Config& config, const EmulatedProblem& problem, const emulator::GlobalMemory& memory,
                         const emulator::Options& options) {
  const Kernel run = find_kernel(config);
  if (run == nullptr) {
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
  params.profile = {problem.profile.address};
  emulator::LaunchShape shape;
  shape.grid.x = launched.blocks;
  shape.block = launched.threads;
  shape.cluster.x = launched.cluster_blocks;
  shape.dynamic_shared_bytes = launched.shared_bytes;
  return emulator::launch(shape, options, memory, [&] { run(params); });
}

}  // namespace thresher::kernels::dual_gemm
