#include "strategies/gemm/plain_call.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "core/integers.hpp"
#include "pipeline/grouped/tokens.hpp"
#include "strategies/gemm/device/plain_params.hpp"
#include "strategies/gemm/formats.hpp"
#include "strategies/gemm/tensors.hpp"

namespace thresher::strategies::gemm {
namespace {

machine::TensorMapDescription weights_map(const PlainKernel& kernel, const Tensor& view) {
  const std::int64_t bytes = element_bytes(kernel.operand);
  const WeightExtents extents = weight_extents(view);
  return rows_map({.element = element_type(kernel.operand),
                   .address = device_address(view.data),
                   .k = extents.k,
                   .rows = extents.n,
                   .slots = extents.experts,
                   .row_bytes = extents.row_stride * bytes,
                   .slot_bytes = extents.expert_stride * bytes},
                  static_cast<std::uint32_t>(kernel.boxes.weight_rows), kernel.boxes.swizzle);
}

bool are_many(Scaling scaling) { return scaling == Scaling::row || scaling == Scaling::block; }

/// `view` is [E,N,K]. It may leave out rows of a stack whose rows are contiguous. The scales of rows, or of parts of
/// blocks of rows, then lie as the rows do. A matrix for itself may have gaps between its rows, but its scales are
/// contiguous.
WeightScaleParams weight_scales(Scaling scaling, const Tensor& view, bool is_matrix) {
  if (!are_many(scaling) || view.rank == 0) {
    return {scales_of(scaling, view), 1, 0};
  }
  const WeightExtents extents = weight_extents(view);
  const std::int64_t k = extents.k;
  const std::int64_t rows = is_matrix ? extents.n : extents.expert_stride / k;
  if (scaling == Scaling::row) {
    return {scales_of(scaling, view), narrow(rows), narrow(is_matrix ? 1 : extents.row_stride / k)};
  }
  const std::int64_t along_k = ceil_div(k, std::int64_t{scale_block});
  return {scales_of(scaling, view), narrow(ceil_div(rows, std::int64_t{scale_block}) * along_k), narrow(along_k)};
}

/// How far apart the scales of tokens lie, of `rows` tokens a slot.
struct TokenScaleStrides {
  std::int64_t slot = 1;
  std::int64_t row = 0;
  std::int64_t block = 0;
};
TokenScaleStrides token_scale_strides(Scaling scaling, const Tensor& a) {
  const std::int64_t rows = a.shape[a.rank - 2];
  if (scaling != Scaling::block) {
    return {.slot = scaling == Scaling::row ? rows : 1};
  }
  const std::int64_t along_k = ceil_div(a.shape[a.rank - 1], std::int64_t{scale_block});
  if (a.scales.layout == ScaleLayout::column_major) {
    const std::int64_t padded = round_up(rows, std::int64_t{4});
    return {along_k * padded, 1, padded};
  }
  return {along_k * rows, along_k, 1};
}

struct PlainLaunch {
  ProductProblem problem;
  PlainKernel kernel;
  std::int64_t max_blocks = 0;  ///< of persistent ones
  std::optional<RowsInWorkspace> gathered{};

  void bind(const CallTensors& call, LaunchArguments& out) const {
    const CallExtents extents = extents_of(call);
    PlainParams params{};
    params.groups = group_params(call, kernel.tile_outputs);
    params.finish = finish_params(problem, call);
    params.profile = {profile_address(call)};
    params.k = static_cast<std::uint32_t>(extents.k);
    const bool is_matrix = tensor_at(call, groups_index).rank == 0;
    params.gate_scales = weight_scales(kernel.weight_scaling, gate_of(call), is_matrix);
    params.up_scales = weight_scales(kernel.weight_scaling, up_of(call), is_matrix);
    set_token_scales(call, extents, params);
    out.set(params);
    const std::int64_t tiles = max_tiles(extents, kernel.tile_widths.most, kernel.tile_outputs);
    const std::int64_t cluster = kernel.launch.cluster.x;
    out.grid.x = narrow((kernel.launch.persistent ? std::min(max_blocks / cluster, tiles) : tiles) * cluster);
    const machine::ElementType element = element_type(kernel.operand);
    const OperandRows tokens = gathered ? token_rows(call, *gathered, element, extents.k) : token_rows(call, element);
    out.add_map(offsetof(PlainParams, few_tokens), rows_map(tokens, pipeline::few_token_rows, kernel.boxes.swizzle));
    out.add_map(offsetof(PlainParams, many_tokens),
                rows_map(tokens, kernel.boxes.many_token_rows, kernel.boxes.swizzle));
  }

  void set_token_scales(const CallTensors& call, const CallExtents& extents, PlainParams& params) const {
    const Tensor& a = tokens_of(call);
    const TokenScaleStrides strides = token_scale_strides(kernel.token_scaling, a);
    params.token_scales = scales_of(kernel.token_scaling, a);
    params.token_scales_slot_stride = extents.has_slots ? narrow(strides.slot) : 0;
    params.token_scales_row_stride = narrow(strides.row);
    params.token_scales_block_stride = narrow(strides.block);
    params.ids_divisor = narrow(problem.row_ids_divisor);
  }

  void bind_weights(const CallTensors& call, LaunchArguments& out) const {
    out.add_map(offsetof(PlainParams, gate), weights_map(kernel, gate_of(call)));
    if (kernel.matrices == 2) {
      out.add_map(offsetof(PlainParams, up), weights_map(kernel, up_of(call)));
    }
  }
};

/// The largest call has a cluster for each tile.
std::int64_t max_blocks(const ProductProblem& problem, const PlainKernel& kernel) {
  return max_tiles(extents_of(problem), kernel.tile_widths.most, kernel.tile_outputs) * kernel.launch.cluster.x;
}

KernelLaunch multiplying(const PlainLaunch& product) {
  KernelLaunch launch = product.kernel.launch;
  launch.accesses = plain_accesses(product.problem, product.kernel, product.gathered);
  launch.bind = [product](const CallTensors& call, LaunchArguments& out) {
    product.bind(call, out);
    return true;
  };
  launch.bind_weights = [product](const CallTensors& call, LaunchArguments& out) { product.bind_weights(call, out); };
  return launch;
}

Access::Memory scales_memory(Scaling scaling) {
  return are_many(scaling) ? Access::Memory::scales : Access::Memory::global_scale;
}

}  // namespace

machine::Global<float> scales_of(Scaling scaling, const Tensor& view) {
  return {are_many(scaling) ? device_address(view.scales.data) : device_address(view.global_scale)};
}

std::vector<Access> plain_accesses(const ProductProblem& problem, const PlainKernel& kernel,
                                   const std::optional<RowsInWorkspace>& gathered) {
  constexpr auto fresh = Access::Use::depends_on_previous;
  std::vector<Access> all{gathered ? Access{Access::Memory::workspace, gathered->piece, fresh}
                                   : Access{Access::Memory::tensor, tokens_index, fresh}};
  add_weight_reads(kernel.matrices, Access::Memory::tensor, all);
  if (kernel.token_scaling != Scaling::none) {
    all.push_back({scales_memory(kernel.token_scaling), tokens_index, fresh});
  }
  if (kernel.weight_scaling != Scaling::none) {
    add_weight_reads(kernel.matrices, scales_memory(kernel.weight_scaling), all);
  }
  add_common_accesses(problem, kernel.profiled, all);
  return all;
}

PlannedCall planned_call(const ProductProblem& problem, const PlainKernel& kernel, int multiprocessors) {
  PlannedCall call;
  PlainLaunch product{problem, kernel, std::int64_t{multiprocessors} * kernel.blocks_resident};
  add_status(problem, kernel.launch.persistent ? product.max_blocks : max_blocks(problem, kernel), call);
  if (problem.layout == ProductRows::gathered) {
    product.gathered = add_gathering(problem, std::nullopt, kernel.launch.dependent, call);
  }
  call.steps.emplace_back(multiplying(product));
  read_in_place(call);
  return call;
}

}  // namespace thresher::strategies::gemm
