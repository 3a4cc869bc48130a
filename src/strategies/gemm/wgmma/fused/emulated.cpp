#include <array>

#include "machine/emulator/engine/tensor_map.hpp"
#include "strategies/gemm/wgmma/fused/device/operation.hpp"
#include "strategies/gemm/wgmma/fused/kernel.hpp"
#include "strategies/gemm/wgmma/fused/tiles.hpp"
#include "strategies/host/emulated_kernels.hpp"

namespace thresher::strategies::gemm::fused {
namespace {

constexpr Config profile(pipeline::Ablation ablation, Epilogue epilogue) {
  return {.block_outputs = 32, .stages = 3, .epilogue = epilogue, .profiled = true, .ablation = ablation};
}

constexpr std::array profiles{
    profile(pipeline::Ablation::none, Epilogue::simt),
    profile(pipeline::Ablation::no_epilogue, Epilogue::tma),
    // TMA is not used here: nothing would order its two stores of the same values.
    profile(pipeline::Ablation::epilogue_twice, Epilogue::simt),
    profile(pipeline::Ablation::loads_only, Epilogue::simt),
    profile(pipeline::Ablation::products_only, Epilogue::simt),
};

/// The planner chooses these for the origin's shapes in bf16 on an H200 when it is asked for one of the other
/// strategies.
constexpr Config sequential(int block_outputs, int stages, int split_k) {
  return {.order = Order::sequential,
          .block_outputs = block_outputs,
          .stages = stages,
          .split_k = split_k,
          .epilogue = Epilogue::tma};
}
constexpr Config pingpong(int warpgroup_tiles, int block_outputs, int stages, bool reallocates_registers) {
  return {.order = Order::pingpong,
          .warpgroup_tiles = warpgroup_tiles,
          .block_outputs = block_outputs,
          .stages = stages,
          .epilogue = Epilogue::tma,
          .persistent = true,
          .loader_registers = reallocates_registers ? 40 : 0,
          .math_registers = reallocates_registers ? 232 : 0};
}
constexpr std::array others{sequential(128, 7, 2),   sequential(128, 7, 1),     sequential(96, 8, 2),
                            sequential(96, 8, 1),    pingpong(2, 64, 6, false), pingpong(2, 48, 7, false),
                            pingpong(4, 48, 4, true)};

}  // namespace

std::span<const Config> profiled_configs() { return profiles; }

std::vector<CompiledIn> compiled_in() {
  std::vector<CompiledIn> kernels;
  const auto add = [&]<Config config> {
    kernels.push_back({kernel_expression(config), &host_kernel<&kernel<config>>});
  };
  for_each_config<small_config_list>(add);
  for_each_config<others>(add);
  for_each_config<profiles>(add);
  for_each_config<default_config_list>(add);
  return kernels;
}

}  // namespace thresher::strategies::gemm::fused
