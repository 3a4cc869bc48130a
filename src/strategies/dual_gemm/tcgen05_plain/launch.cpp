#include "strategies/dual_gemm/tcgen05_plain/launch.hpp"

#include <cstddef>

#include "core/integers.hpp"
#include "strategies/dual_gemm/tcgen05_plain/host/work.hpp"
#include "strategies/dual_gemm/tcgen05_plain/params.hpp"
#include "strategies/dual_gemm/tcgen05_plain/program.hpp"
#include "strategies/gemm/formats.hpp"
#include "strategies/gemm/tensors.hpp"

namespace thresher::strategies::dual_gemm::tcgen05_plain {
namespace {

/// Rows of an operand in boxes of `rows` × slot_k(config).
machine::TensorMapDescription map_of(const Config& config, const Tensor& operand, u32 rows) {
  machine::TensorMapDescription map;
  map.address = device_address(operand.data);
  map.element = element_type(config.operand);
  map.swizzle = machine::Swizzle::b128;
  map.rank = 2;
  map.extent[0] = static_cast<machine::u64>(operand.shape[1]);
  map.extent[1] = static_cast<machine::u64>(operand.shape[0]);
  map.stride_bytes[1] = static_cast<machine::u64>(operand.strides[0] * element_bytes(config.operand));
  map.box[0] = slot_k(config);
  map.box[1] = rows;
  return map;
}

/// Where the scales of a matrix lie; null where there are none, or the one is 1.
machine::Global<float> scales_of(Scaling scaling, const Tensor& matrix) {
  return {scaling == Scaling::row ? device_address(matrix.scales.data) : device_address(matrix.global_scale)};
}

bool allows_wide_stores(const Tensor& c) { return c.shape[1] % 8 == 0 && c.strides[0] % 8 == 0; }

void bind(const Config& config, const Activation& activation, const CallTensors& call, LaunchArguments& out) {
  const Tensor& tokens = tokens_of(call);
  const Tensor& weights = gate_of(call);
  const Tensor& c = output_of(call);
  Params params{};
  params.token_scales = scales_of(config.token_scaling, tokens);
  params.gate_scales = scales_of(config.weight_scaling, weights);
  params.up_scales = scales_of(config.weight_scaling, up_of(call));
  params.c = {device_address(c.data)};
  params.profile = {profile_address(call)};
  params.c_row_stride = static_cast<machine::u64>(c.strides[0]);
  params.m = narrow(tokens.shape[0]);
  params.n = narrow(weights.shape[0]);
  params.k_steps = narrow(ceil_div(weights.shape[1], slot_k(config)));
  params.c_wide = allows_wide_stores(c) ? 1 : 0;
  params.token_tiles = narrow(ceil_div(tokens.shape[0], config.block_tokens));
  params.output_tiles = narrow(ceil_div(weights.shape[0], tile_outputs(config)));
  params.alpha = activation.alpha;
  params.limit = activation.limit;
  params.up_offset = activation.up_offset;
  out.set(params);
  out.grid.x = params.token_tiles * params.output_tiles * narrow(pipeline::cluster_blocks(shape_of(config)));
  out.add_map(offsetof(Params, tokens), map_of(config, tokens, loaded_tokens(config)));
}

void bind_weights(const Config& config, const CallTensors& call, LaunchArguments& out) {
  out.add_map(offsetof(Params, gate), map_of(config, gate_of(call), block_outputs));
  out.add_map(offsetof(Params, up), map_of(config, up_of(call), block_outputs));
}

void add_operand(std::vector<Access>& accesses, std::size_t tensor, Scaling scaling, Access::Use use) {
  accesses.push_back({Access::Memory::tensor, tensor, use});
  if (scaling != Scaling::none) {
    accesses.push_back({scaling == Scaling::row ? Access::Memory::scales : Access::Memory::global_scale, tensor, use});
  }
}

std::vector<Access> accesses(const Config& config) {
  std::vector<Access> all;
  add_operand(all, tokens_index, config.token_scaling, Access::Use::depends_on_previous);
  add_operand(all, gate_index, config.weight_scaling, Access::Use::reads);
  add_operand(all, up_index, config.weight_scaling, Access::Use::reads);
  all.push_back({Access::Memory::tensor, output_index, Access::Use::writes});
  if (config.profiled) {
    all.push_back({Access::Memory::tensor, profile_index, Access::Use::writes});
  }
  return all;
}

/// A slot of the ring: four products of the gate and four of the up, 32 bytes along K each.
Expectations expectations(const Config& config) {
  Expectations expected;
  expected.matrix_kind = config.operand == Number::e4m3 ? "UTCQMMA" : "UTCHMMA";
  expected.min_matrix_instructions = static_cast<int>(2 * slot_products);
  expected.min_tma_loads = 3;
  expected.tensor.products = static_cast<int>(2 * slot_products);
  expected.tensor.scale_copies = 0;
  expected.tensor.is_pair = config.blocks == 2;
  expected.tensor.min_commits = 2;
  // Gate and up of a chunk of tokens; what a split sends, in a loop of its own.
  constexpr std::int64_t warp_lanes = 32;
  expected.tensor.loaded_bytes =
      warp_lanes * (2 * staged_tokens(config) + pipeline::sent_columns(shape_of(config))) * sizeof(float);
  return expected;
}

KernelLaunch multiplying(const Config& config, const Activation& activation) {
  const pipeline::TensorShape shape = shape_of(config);
  KernelLaunch launch;
  launch.title = "multiply";
  launch.program = program(config);
  launch.expression = kernel_name(config);
  launch.block.x = narrow(pipeline::threads(shape));
  launch.cluster.x = narrow(pipeline::cluster_blocks(shape));
  launch.shared_bytes = narrow(pipeline::shared_bytes(shape));
  launch.dependent = config.dependent_launch;
  launch.persistent = config.persistent;
  launch.accesses = accesses(config);
  launch.bind = [config, activation](const CallTensors& call, LaunchArguments& out) {
    bind(config, activation, call, out);
    return true;
  };
  launch.bind_weights = [config](const CallTensors& call, LaunchArguments& out) { bind_weights(config, call, out); };
  launch.expected = expectations(config);
  return launch;
}

}  // namespace

PlannedCall planned_call(const ProductProblem& problem, const Config& config) {
  PlannedCall call;
  call.strategy = "tcgen05_plain";
  call.work = work(problem, config);
  call.knobs = knob_table().knobs(config);
  call.data_alignment = tma_alignment_bytes;
  call.alignments = {
      {tokens_index, tma_alignment_bytes}, {gate_index, tma_alignment_bytes}, {up_index, tma_alignment_bytes}};
  call.steps.emplace_back(multiplying(config, *problem.activation));
  return call;
}

}  // namespace thresher::strategies::dual_gemm::tcgen05_plain
