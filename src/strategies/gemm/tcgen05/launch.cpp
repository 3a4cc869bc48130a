// The launches of products on tcgen05. Those of NVFP4 are in block_scaled_launch.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "core/integers.hpp"
#include "pipeline/grouped/tensor_tokens.hpp"
#include "strategies/gemm/call.hpp"
#include "strategies/gemm/formats.hpp"
#include "strategies/gemm/plain_call.hpp"
#include "strategies/gemm/tcgen05/kernel.hpp"
#include "strategies/gemm/tcgen05/params.hpp"
#include "strategies/gemm/tensors.hpp"

namespace thresher::strategies::gemm::tcgen05 {
namespace {

const char* instruction(const Config& config) {
  return config.nvfp4 ? "UTCOMMA" : config.operand == Number::e4m3 ? "UTCQMMA" : "UTCHMMA";
}

/// Instructions of a stage, whose last commits it, and of an epilogue warp. The warp loads its lanes of every
/// accumulator. With static tiles it loads chunks in a loop, and in another loop the columns that a split sends. With
/// groups it loads chunks of two widths, or whole tiles where K is split.
Expectations expectations(const Config& config) {
  constexpr std::int64_t warp_lanes = 32;
  constexpr int columns_per_scale_copy = 4;  // of tensor memory
  const pipeline::TensorShape shape = shape_of(config);
  const int parts = accumulators(config);
  const std::int64_t columns = config.dense ? parts * dense_chunk_tokens(config) + pipeline::sent_columns(shape)
                                            : parts * pipeline::loaded_columns(shape, tile_widths_of(config));
  Expectations expected;
  expected.matrix_kind = instruction(config);
  expected.min_matrix_instructions = parts * static_cast<int>(slot_products);
  // Each matrix and the tokens come through a tensor map, and so do their scales.
  expected.min_tma_loads = (parts + 1) * (config.nvfp4 ? 2 : 1);
  expected.tensor.products = parts * static_cast<int>(slot_products);
  expected.tensor.scale_copies = shape.scale_columns / columns_per_scale_copy;
  expected.tensor.is_pair = shape.group == machine::Group::pair;
  expected.tensor.min_commits = 2;
  expected.tensor.loaded_bytes = warp_lanes * columns * static_cast<std::int64_t>(sizeof(float));
  return expected;
}

/// Rows of an operand in boxes of `rows` × slot_k(config).
machine::TensorMapDescription map_of(const Config& config, const Tensor& operand, u32 rows) {
  return matrix_map(operand, {rows, slot_k(config), machine::Swizzle::b128});
}

void bind_dense(const ProductProblem& problem, const Config& config, const CallTensors& call, LaunchArguments& out) {
  DenseParams params{};
  params.token_scales = scales_of(config.token_scaling, tokens_of(call));
  params.gate_scales = scales_of(config.weight_scaling, gate_of(call));
  params.up_scales = scales_of(config.weight_scaling, up_of(call));
  params.k_steps = narrow(ceil_div(extents_of(call).k, slot_k(config)));
  set_static_tiles(problem, call, config.block_tokens, tile_outputs(config), params);
  out.set(params);
  out.grid.x = params.token_tiles * params.output_tiles * narrow(pipeline::cluster_blocks(shape_of(config)));
  out.add_map(offsetof(DenseParams, tokens), map_of(config, tokens_of(call), loaded_tokens(config)));
}

void bind_weights(const Config& config, const CallTensors& call, LaunchArguments& out) {
  out.add_map(offsetof(DenseParams, gate), map_of(config, gate_of(call), block_rows));
  out.add_map(offsetof(DenseParams, up), map_of(config, up_of(call), block_rows));
}

PlainKernel plain_kernel(const ProductProblem& problem, const Config& config) {
  return {.launch = product_launch(config, problem.experts),
          .operand = config.operand,
          .token_scaling = config.token_scaling,
          .weight_scaling = config.weight_scaling,
          .matrices = config.matrices,
          .tile_widths = tile_widths_of(config),
          .tile_outputs = tile_outputs(config),
          .boxes = {machine::Swizzle::b128, static_cast<int>(block_rows), pipeline::many_tensor_rows},
          .profiled = config.profiled};
}

PlannedCall dense_call(const ProductProblem& problem, const Config& config) {
  const PlainKernel kernel = plain_kernel(problem, config);
  KernelLaunch launch = kernel.launch;
  launch.accesses = plain_accesses(problem, kernel);
  launch.bind = [problem, config](const CallTensors& call, LaunchArguments& out) {
    bind_dense(problem, config, call, out);
    return true;
  };
  launch.bind_weights = [config](const CallTensors& call, LaunchArguments& out) { bind_weights(config, call, out); };
  PlannedCall call;
  read_in_place(call);
  call.steps.emplace_back(std::move(launch));
  return call;
}

}  // namespace

int block_bytes(const Config& config, std::int64_t experts) {
  const pipeline::TensorShape shape = shape_of(config);
  return config.dense
             ? pipeline::shared_bytes(shape)
             : pipeline::grouped_shared_bytes(shape, narrow(std::min<std::int64_t>(experts, pipeline::max_groups)));
}

KernelLaunch product_launch(const Config& config, std::int64_t experts) {
  const pipeline::TensorShape shape = shape_of(config);
  KernelLaunch launch;
  launch.title = "multiply";
  launch.program = program(config);
  launch.expression = kernel_name(config);
  launch.block.x = narrow(pipeline::threads(shape));
  launch.cluster.x = narrow(pipeline::cluster_blocks(shape));
  launch.shared_bytes = narrow(block_bytes(config, experts));
  launch.dependent = config.dependent_launch;
  launch.persistent = shape.persistent;
  launch.expected = expectations(config);
  return launch;
}

PlannedCall planned_call(const ProductProblem& problem, const Config& config, int multiprocessors) {
  if (config.nvfp4) {
    return block_scaled::planned_call(problem, config, multiprocessors);
  }
  return config.dense ? dense_call(problem, config)
                      : gemm::planned_call(problem, plain_kernel(problem, config), multiprocessors);
}

}  // namespace thresher::strategies::gemm::tcgen05
