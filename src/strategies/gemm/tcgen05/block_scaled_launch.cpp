// The launches of products of NVFP4 operands on tcgen05. They pack weights, prepare tokens, and multiply.
#include <algorithm>
#include <cstddef>

#include "pipeline/grouped/tensor_tokens.hpp"
#include "strategies/gemm/gather.hpp"
#include "strategies/gemm/nvfp4_operands.hpp"
#include "strategies/gemm/tcgen05/device/prepare.hpp"
#include "strategies/gemm/tcgen05/kernel.hpp"
#include "strategies/gemm/tcgen05/params.hpp"
#include "strategies/gemm/tensors.hpp"

namespace thresher::strategies::gemm::tcgen05::block_scaled {
namespace {

using machine::ElementType;
using machine::Swizzle;
using machine::TensorMapDescription;

constexpr u32 scale_elements = scale_block_bytes / 2;  // of 16 bits: a row of a box has 256 elements at most

// --- what all launches know

enum PackedPiece : std::size_t { codes_piece, scales_piece };

struct Plan {
  ProductProblem problem;
  Config config;
  int multiprocessors = 0;
  std::size_t packed_scales_at = 0;
  RowsInWorkspace codes{};   ///< of prepared tokens
  RowsInWorkspace scales{};  ///< their groups of 128 rows
};

u64 address_in(const void* memory, std::size_t offset) { return device_address(memory) + offset; }

/// Blocks of 128 rows by 256 along K of one expert.
std::int64_t expert_blocks(const Config& config, std::int64_t n, std::int64_t k) {
  return ceil_div(n, std::int64_t{block_outputs(config)}) * k_steps(narrow(k));
}

// --- packing

PackExpertsParams packing_params(const Plan& plan, const CallTensors& call) {
  const Tensor& gate = gate_of(call);
  const Tensor& up = plan.config.matrices == 2 ? up_of(call) : gate;
  const WeightExtents extents = weight_extents(gate);
  PackExpertsParams params{};
  params.first.gate = weight_matrix(gate);
  params.first.up = weight_matrix(up);
  params.first.codes = {device_address(call.packed)};
  params.first.scales = {address_in(call.packed, plan.packed_scales_at)};
  params.first.k_steps = k_steps(narrow(extents.k));
  set_expert_strides(gate, up, params);
  params.expert_blocks = narrow(expert_blocks(plan.config, extents.n, extents.k));
  return params;
}

KernelLaunch packing_launch(const Plan& plan) {
  const Config& config = plan.config;
  KernelLaunch launch =
      gemm::packing_launch("pack the weights", packing_program(config.dense),
                           pack_kernel_name(config.dense, config.matrices), pack_threads, config.matrices);
  launch.accesses.push_back({Access::Memory::packed, codes_piece, Access::Use::writes});
  launch.accesses.push_back({Access::Memory::packed, scales_piece, Access::Use::writes});
  launch.bind = [plan](const CallTensors& call, LaunchArguments& out) {
    const PackExpertsParams params = packing_params(plan, call);
    if (plan.config.dense) {
      out.set(params.first);
    } else {
      out.set(params);
    }
    out.grid.x = params.expert_blocks * narrow(weight_extents(gate_of(call)).experts);
    return true;
  };
  return launch;
}

/// A change of device/layout.hpp is another name.
const char* layout_name(const Config& config) {
  return config.dense           ? "nvfp4-sm100-1"
         : config.matrices == 2 ? "nvfp4-sm100-1-experts"
                                : "nvfp4-sm100-1-experts-single";
}

void add_packing(Plan& plan, PlannedCall& call) {
  const std::int64_t blocks =
      size_product(plan.problem.experts, expert_blocks(plan.config, plan.problem.n, plan.problem.k));
  add_piece(call.packed, "packed codes", static_cast<std::size_t>(size_product(blocks, weight_block_bytes)));
  add_piece(call.packed, "packed scales", static_cast<std::size_t>(size_product(blocks, weight_scale_bytes)));
  plan.packed_scales_at = call.packed[scales_piece].offset;
  set_packing("tcgen05", layout_name(plan.config), {packing_launch(plan)}, call);
}

// --- tokens

/// Rows of C, with slots one behind the other: as many as prepared rows.
std::int64_t rows_of_call(const CallExtents& extents) {
  return extents.rows * (extents.has_slots ? extents.experts : 1);
}
std::int64_t max_row_tiles(const CallExtents& extents, const Config& config) {
  return config.dense ? ceil_div(extents.rows, std::int64_t{config.block_tokens})
                      : max_tiles(extents, config.block_tokens, extents.n);
}

/// Whether the product reads these tokens where they lie: no sign of a scale has to be moved into codes, and TMA can
/// address both.
bool reads_in_place(const Config& config, const Tensor& tokens) {
  if (!config.unsigned_scales || tokens.scales.layout != ScaleLayout::blocked) {
    return false;
  }
  const bool is_addressable = (static_cast<u64>(tokens.strides[0]) / 2) % tma_alignment_bytes == 0 &&
                              device_address(tokens.data) % tma_alignment_bytes == 0 &&
                              device_address(tokens.scales.data) % tma_alignment_bytes == 0;
  return is_addressable &&
         blocked_scales_fit(narrow(tokens.shape[0]), narrow(tokens.shape[1]), narrow(config.block_tokens));
}

PreparedTokens prepared_tokens(const Plan& plan, const CallTensors& call) {
  const u32 k = narrow(plan.problem.k);
  return {{address_in(call.workspace, plan.codes.offset)},
          {address_in(call.workspace, plan.scales.offset)},
          prepared_row_bytes(k),
          scale_k_blocks(k)};
}

/// Where the tokens are read as they came, the grid has no blocks and is not launched.
void bind_tokens(const Plan& plan, const CallTensors& call, LaunchArguments& out) {
  const Tensor& tokens = tokens_of(call);
  const u32 block_tokens = narrow(plan.config.block_tokens);
  const PreparedTokens to = prepared_tokens(plan, call);
  PrepareTokensParams params{};
  params.tokens = token_matrix(tokens);
  params.codes = to.codes;
  params.scales = to.scales;
  params.row_bytes = to.row_bytes;
  params.k_blocks = to.k_blocks;
  params.block_tokens = block_tokens;
  params.scale_rows = 128 * prepared_scale_groups(narrow(tokens.shape[0]), block_tokens);
  out.set(params);
  out.grid.x = reads_in_place(plan.config, tokens)
                   ? 0
                   : static_cast<u32>((prepare_items(params) + prepare_threads - 1) / prepare_threads);
}

void bind_rows(const Plan& plan, const CallTensors& call, LaunchArguments& out) {
  constexpr std::int64_t blocks_per_multiprocessor = 4;
  const CallExtents extents = gemm::extents_of(call);
  PrepareRowsParams params{};
  params.tokens = token_matrix(tokens_of(call));
  params.to = prepared_tokens(plan, call);
  params.groups = group_params(call, extents.n).groups;
  if (plan.config.gathered) {
    params.row_ids = {device_address(tensor_at(call, row_ids_index).data)};
    params.ids_end = static_cast<u32>(tokens_of(call).shape[0] * plan.problem.row_ids_divisor);
    params.ids_divisor = narrow(plan.problem.row_ids_divisor);
  }
  out.set(params);
  out.grid.x = narrow(std::min(plan.multiprocessors * blocks_per_multiprocessor, max_row_tiles(extents, plan.config)));
}

KernelLaunch preparing(const Plan& plan) {
  const Config& config = plan.config;
  KernelLaunch launch =
      preparation_launch(config.dense ? "prepare the tokens" : "prepare the rows", preparation_program(config),
                         prepare_kernel_name(config), config.dense ? prepare_threads : prepare_rows_threads);
  launch.dependent = config.dependent_launch;
  add_reads(launch.accesses, tokens_index, Format::nvfp4, Access::Use::depends_on_previous);
  if (!config.dense) {
    launch.shared_bytes = pipeline::directory_bytes(narrow(plan.problem.experts));
  }
  if (!plan.problem.is_dense()) {
    launch.accesses.push_back({Access::Memory::tensor, groups_index, Access::Use::depends_on_previous});
  }
  if (config.gathered) {
    launch.accesses.push_back({Access::Memory::tensor, row_ids_index, Access::Use::depends_on_previous});
  }
  launch.accesses.push_back({Access::Memory::workspace, plan.codes.piece, Access::Use::writes});
  launch.accesses.push_back({Access::Memory::workspace, plan.scales.piece, Access::Use::writes});
  launch.bind = [plan](const CallTensors& call, LaunchArguments& out) {
    if (plan.config.dense) {
      bind_tokens(plan, call, out);
    } else {
      bind_rows(plan, call, out);
    }
    return true;
  };
  return launch;
}

void add_preparation(Plan& plan, PlannedCall& call) {
  const CallExtents extents = extents_of(plan.problem);
  const u32 k = narrow(plan.problem.k);
  const auto row_bytes = static_cast<std::int64_t>(prepared_row_bytes(k));
  const std::int64_t group_bytes = std::int64_t{scale_k_blocks(k)} * scale_block_bytes;
  const std::int64_t groups = size_product(max_row_tiles(extents, plan.config), token_scale_groups(plan.config));
  plan.codes =
      add_rows(plan.config.dense ? "prepared tokens" : "prepared rows", rows_of_call(extents), row_bytes, call);
  plan.scales = add_rows("prepared scales", groups, group_bytes, call);
  call.steps.emplace_back(preparing(plan));
  if (plan.config.dense) {
    call.preparation_steps = 1;
  }
}

// --- the product

/// Tokens as the product's tensor maps see them: as they came, or as they were prepared.
struct TokenOperand {
  u64 codes = 0;  ///< address
  u64 rows = 0;
  u64 row_bytes = 0;   ///< from one row of codes to the next
  u64 used_bytes = 0;  ///< of a row
  u64 scales = 0;      ///< address
  u64 k_blocks = 0;
  u64 scale_groups = 0;
};

TokenOperand prepared_operand(const Plan& plan, const CallTensors& call, const CallExtents& extents) {
  const PreparedTokens to = prepared_tokens(plan, call);
  return {.codes = to.codes.address,
          .rows = static_cast<u64>(rows_of_call(extents)),
          .row_bytes = to.row_bytes,
          .used_bytes = to.row_bytes,
          .scales = to.scales.address,
          .k_blocks = to.k_blocks,
          .scale_groups = static_cast<u64>(max_row_tiles(extents, plan.config)) * token_scale_groups(plan.config)};
}

TokenOperand token_operand(const Plan& plan, const CallTensors& call, const CallExtents& extents) {
  TokenOperand operand = prepared_operand(plan, call, extents);
  if (const Tensor& tokens = tokens_of(call); reads_in_place(plan.config, tokens)) {
    operand.codes = device_address(tokens.data);
    operand.row_bytes = static_cast<u64>(tokens.strides[0]) / 2;
    operand.used_bytes = static_cast<u64>(tokens.shape[1]) / 2;
    operand.scales = device_address(tokens.scales.data);
    operand.scale_groups = scale_groups(narrow(tokens.shape[0]));
  }
  return operand;
}

TensorMapDescription codes_map(const TokenOperand& tokens, u32 rows) {
  return tensor_map(tokens.codes, ElementType::uint8, Swizzle::b128, {tokens.used_bytes, tokens.rows},
                    {tokens.row_bytes}, {slot_row_bytes, rows});
}
TensorMapDescription token_scales_map(const Config& config, const TokenOperand& tokens) {
  return tensor_map(tokens.scales, ElementType::uint16, Swizzle::none,
                    {scale_elements, tokens.k_blocks, tokens.scale_groups},
                    {scale_block_bytes, tokens.k_blocks * scale_block_bytes},
                    {scale_elements, loaded_scale_blocks(config), token_scale_groups(config)});
}

/// Both kinds of parameters begin with the two maps. Static tiles are of one expert, whose index their maps leave out.
void add_weight_maps(const Plan& plan, const CallTensors& call, LaunchArguments& out) {
  static_assert(offsetof(DenseParams, weights) == offsetof(GroupedParams, weights) &&
                offsetof(DenseParams, weight_scales) == offsetof(GroupedParams, weight_scales));
  const WeightExtents extents = weight_extents(gate_of(call));
  const auto blocks = static_cast<u64>(expert_blocks(plan.config, extents.n, extents.k));
  const auto experts = static_cast<u64>(extents.experts);
  TensorMapDescription codes = tensor_map(
      device_address(call.packed), ElementType::uint8, Swizzle::b128, {slot_row_bytes, block_rows, blocks, experts},
      {slot_row_bytes, weight_block_bytes, blocks * weight_block_bytes}, {slot_row_bytes, block_rows, 1, 1});
  TensorMapDescription scales = tensor_map(address_in(call.packed, plan.packed_scales_at), ElementType::uint16,
                                           Swizzle::none, {scale_elements, slot_scale_blocks, blocks, experts},
                                           {scale_block_bytes, weight_scale_bytes, blocks * weight_scale_bytes},
                                           {scale_elements, slot_scale_blocks, 1, 1});
  if (plan.config.dense) {
    codes.rank = 3;
    scales.rank = 3;
  }
  out.add_map(offsetof(GroupedParams, weights), codes);
  out.add_map(offsetof(GroupedParams, weight_scales), scales);
}

template <class Params>
Params common_params(const CallTensors& call, const CallExtents& extents) {
  Params params{};
  params.profile = {profile_address(call)};
  params.token_factors = {device_address(tokens_of(call).global_scale)};
  params.gate_factors = {device_address(gate_of(call).global_scale)};
  params.up_factors = {device_address(up_of(call).global_scale)};
  params.k_steps = k_steps(narrow(extents.k));
  return params;
}

void bind_dense(const Plan& plan, const CallTensors& call, LaunchArguments& out) {
  const CallExtents extents = gemm::extents_of(call);
  const TokenOperand tokens = token_operand(plan, call, extents);
  auto params = common_params<DenseParams>(call, extents);
  params.scale_bytes = {tokens.scales};
  params.k = narrow(extents.k);
  set_static_tiles(plan.problem, call, plan.config.block_tokens, tile_outputs(plan.config), params);
  out.set(params);
  out.grid.x = params.token_tiles * params.output_tiles * narrow(pipeline::cluster_blocks(shape_of(plan.config)));
  out.add_map(offsetof(DenseParams, tokens), codes_map(tokens, loaded_tokens(plan.config)));
  out.add_map(offsetof(DenseParams, token_scales), token_scales_map(plan.config, tokens));
}

void bind_groups(const Plan& plan, const CallTensors& call, LaunchArguments& out) {
  const CallExtents extents = gemm::extents_of(call);
  const TokenOperand tokens = prepared_operand(plan, call, extents);
  const int outputs = tile_outputs(plan.config);
  auto params = common_params<GroupedParams>(call, extents);
  params.groups = group_params(call, outputs);
  params.finish = finish_params(plan.problem, call);
  params.row_tiles = narrow(ceil_div(extents.n, std::int64_t{block_outputs(plan.config)}));
  out.set(params);
  const std::int64_t cluster = pipeline::cluster_blocks(shape_of(plan.config));
  const std::int64_t clusters = max_tiles(extents, plan.config.block_tokens, outputs);
  out.grid.x = narrow(std::min(plan.multiprocessors / cluster, clusters) * cluster);
  add_weight_maps(plan, call, out);
  out.add_map(offsetof(GroupedParams, few_tokens), codes_map(tokens, pipeline::few_token_rows));
  out.add_map(offsetof(GroupedParams, many_tokens), codes_map(tokens, pipeline::many_tensor_rows));
  out.add_map(offsetof(GroupedParams, token_scales), token_scales_map(plan.config, tokens));
}

std::vector<Access> accesses(const Plan& plan) {
  std::vector<Access> all{{Access::Memory::packed, codes_piece, Access::Use::reads},
                          {Access::Memory::packed, scales_piece, Access::Use::reads},
                          {Access::Memory::workspace, plan.codes.piece, Access::Use::depends_on_previous},
                          {Access::Memory::workspace, plan.scales.piece, Access::Use::depends_on_previous},
                          {Access::Memory::global_scale, tokens_index, Access::Use::depends_on_previous}};
  add_weight_reads(plan.config.matrices, Access::Memory::global_scale, all);
  if (plan.config.unsigned_scales) {
    add_reads(all, tokens_index, Format::nvfp4, Access::Use::depends_on_previous);
  }
  add_common_accesses(plan.problem, plan.config.profiled, all);
  return all;
}

KernelLaunch multiplying(const Plan& plan) {
  const Config& config = plan.config;
  KernelLaunch launch = product_launch(config, plan.problem.experts);
  launch.accesses = accesses(plan);
  launch.bind = [plan](const CallTensors& call, LaunchArguments& out) {
    if (plan.config.dense) {
      bind_dense(plan, call, out);
    } else {
      bind_groups(plan, call, out);
    }
    return true;
  };
  if (config.dense) {
    launch.bind_weights = [plan](const CallTensors& call, LaunchArguments& out) { add_weight_maps(plan, call, out); };
  }
  return launch;
}

}  // namespace

bool prepares(const ProductProblem& problem, const Config& config) {
  return !config.unsigned_scales || !blocked_scales_fit(static_cast<u32>(problem.rows), static_cast<u32>(problem.k),
                                                        static_cast<u32>(config.block_tokens));
}

PlannedCall planned_call(const ProductProblem& problem, const Config& config, int multiprocessors) {
  Plan plan{problem, config, multiprocessors};
  PlannedCall call;
  call.data_alignment = tma_alignment_bytes;
  add_packing(plan, call);
  add_status(problem, multiprocessors, call);
  add_preparation(plan, call);
  call.steps.emplace_back(multiplying(plan));
  return call;
}

}  // namespace thresher::strategies::gemm::tcgen05::block_scaled
