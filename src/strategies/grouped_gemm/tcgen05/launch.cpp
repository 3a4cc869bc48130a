#include "strategies/grouped_gemm/tcgen05/launch.hpp"

#include <algorithm>
#include <cstddef>

#include "core/integers.hpp"
#include "pipeline/grouped/tensor_groups.hpp"
#include "pipeline/grouped/tensor_tokens.hpp"
#include "strategies/gemm/call.hpp"
#include "strategies/gemm/nvfp4_operands.hpp"
#include "strategies/gemm/tensors.hpp"
#include "strategies/grouped_gemm/tcgen05/device/pack.hpp"
#include "strategies/grouped_gemm/tcgen05/device/prepare_rows.hpp"
#include "strategies/grouped_gemm/tcgen05/host/work.hpp"
#include "strategies/grouped_gemm/tcgen05/params.hpp"
#include "strategies/grouped_gemm/tcgen05/program.hpp"

namespace thresher::strategies::grouped_gemm::tcgen05 {
namespace {

using machine::ElementType;
using machine::Swizzle;
using machine::TensorMapDescription;
using machine::u64;

constexpr u32 scale_elements = weights::scale_block_bytes / 2;  // of 16 bits: a box of bytes has at most 256

enum PackedPiece : std::size_t { codes_piece, scales_piece };

// --- weights

/// Blocks of 128 rows by 256 along K of one expert.
u32 row_tiles(const Config& config, std::int64_t n) {
  return narrow(ceil_div(n, static_cast<std::int64_t>(block_outputs(config))));
}
std::int64_t expert_blocks(const Config& config, std::int64_t n, std::int64_t k) {
  return std::int64_t{row_tiles(config, n)} * weights::k_steps(narrow(k));
}

std::vector<WorkspacePiece> packed_pieces(const ProductProblem& problem, const Config& config) {
  const std::int64_t blocks = size_product(problem.experts, expert_blocks(config, problem.n, problem.k));
  std::vector<WorkspacePiece> pieces;
  add_piece(pieces, "packed codes", static_cast<std::size_t>(size_product(blocks, weights::weight_block_bytes)));
  add_piece(pieces, "packed scales", static_cast<std::size_t>(size_product(blocks, weights::weight_scale_bytes)));
  return pieces;
}

/// A view [E,N,K] of weights as packing kernels read one expert of it.
weights::Matrix matrix_of_expert(const Tensor& view) {
  weights::Matrix matrix;
  matrix.values = {device_address(view.data)};
  matrix.scales = {device_address(view.scales.data)};
  matrix.row_bytes = static_cast<u64>(view.strides[1] / 2);
  matrix.rows = narrow(view.shape[1]);
  matrix.scale_columns = narrow(view.shape[2] / 16);
  matrix.scale_stride = narrow(view.strides[1] / 16);
  matrix.scales_blocked = view.scales.layout == ScaleLayout::blocked ? 1 : 0;
  return matrix;
}

u64 scale_bytes_of_expert(const Tensor& view) {
  return view.scales.layout == ScaleLayout::blocked ? scale_bytes(view.shape[1], view.shape[2], ScaleLayout::blocked)
                                                    : static_cast<u64>(view.strides[0] / 16);
}

void add_reads(std::vector<Access>& accesses, std::size_t tensor, Access::Use use) {
  accesses.push_back({Access::Memory::tensor, tensor, use});
  accesses.push_back({Access::Memory::scales, tensor, use});
}

KernelLaunch packing_launch(const Config& config, std::size_t scales_at) {
  KernelLaunch launch;
  launch.title = "pack the weights";
  launch.program = packing_program();
  launch.expression = pack_kernel_name(config.matrices);
  launch.block.x = weights::pack_threads;
  launch.expected.uses_shared_memory = false;
  add_reads(launch.accesses, gate_index, Access::Use::reads);
  if (config.matrices == 2) {
    add_reads(launch.accesses, up_index, Access::Use::reads);
  }
  launch.accesses.push_back({Access::Memory::packed, codes_piece, Access::Use::writes});
  launch.accesses.push_back({Access::Memory::packed, scales_piece, Access::Use::writes});
  launch.bind = [config, scales_at](const CallTensors& call, LaunchArguments& out) {
    const Tensor& gate = call.tensors[gate_index];
    const Tensor& up = call.tensors[config.matrices == 2 ? up_index : gate_index];
    PackExpertsParams params{};
    params.first.gate = matrix_of_expert(gate);
    params.first.up = matrix_of_expert(up);
    params.first.codes = {device_address(call.packed)};
    params.first.scales = {device_address(call.packed) + scales_at};
    params.first.k_steps = weights::k_steps(narrow(gate.shape[2]));
    params.gate_value_bytes = static_cast<u64>(gate.strides[0] / 2);
    params.gate_scale_bytes = scale_bytes_of_expert(gate);
    params.up_value_bytes = static_cast<u64>(up.strides[0] / 2);
    params.up_scale_bytes = scale_bytes_of_expert(up);
    params.expert_blocks = narrow(expert_blocks(config, gate.shape[1], gate.shape[2]));
    out.set(params);
    out.grid.x = params.expert_blocks * narrow(gate.shape[0]);
    return true;
  };
  return launch;
}

PlannedCall packing_call(const ProductProblem& problem, const Config& config) {
  PlannedCall call;
  call.strategy = "tcgen05";
  call.packed = packed_pieces(problem, config);
  call.steps.emplace_back(packing_launch(config, call.packed[scales_piece].offset));
  return call;
}

// --- rows

/// Where prepared rows lie in the workspace.
struct PreparedRows {
  std::size_t codes_piece = 0;
  std::size_t scales_piece = 0;
  std::size_t codes_at = 0;
  std::size_t scales_at = 0;
};

/// Rows of C, with slots one behind the other: as many as prepared rows.
std::int64_t rows_of_call(const CallExtents& extents) {
  return extents.rows * (extents.has_slots ? extents.experts : 1);
}
std::int64_t max_row_tiles(const CallExtents& extents, const Config& config) {
  return max_tiles(extents, config.block_tokens, extents.n);
}
CallExtents extents_of(const ProductProblem& problem) {
  return {problem.experts, problem.rows, problem.n, problem.k, problem.layout == ProductRows::masked};
}

/// Tokens row by row; slots lie one behind the other.
weights::Matrix token_matrix(const Tensor& a) {
  Tensor rows = a;
  if (a.rank == 3) {
    rows.rank = 2;
    rows.shape = {a.shape[0] * a.shape[1], a.shape[2]};
    rows.strides = {a.strides[1], a.strides[2]};
  }
  weights::Matrix matrix = gemm::token_matrix(rows);
  if (a.rank == 3 && a.scales.layout == ScaleLayout::blocked) {
    matrix.slot_rows = narrow(a.shape[1]);
    matrix.slot_scales = narrow(static_cast<std::int64_t>(scale_bytes(a.shape[1], a.shape[2], ScaleLayout::blocked)));
  }
  return matrix;
}

KernelLaunch preparing(const ProductProblem& problem, const Config& config, const PreparedRows& prepared,
                       std::int64_t max_blocks) {
  KernelLaunch launch;
  launch.title = "prepare the rows";
  launch.program = preparation_program(config);
  launch.expression = prepare_kernel_name(config);
  launch.block.x = prepare_rows_threads;
  launch.shared_bytes = pipeline::directory_bytes(narrow(problem.experts));
  launch.dependent = config.dependent_launch;
  add_reads(launch.accesses, tokens_index, Access::Use::depends_on_previous);
  launch.accesses.push_back({Access::Memory::tensor, groups_index, Access::Use::depends_on_previous});
  if (config.gathered) {
    launch.accesses.push_back({Access::Memory::tensor, row_ids_index, Access::Use::depends_on_previous});
  }
  launch.accesses.push_back({Access::Memory::workspace, prepared.codes_piece, Access::Use::writes});
  launch.accesses.push_back({Access::Memory::workspace, prepared.scales_piece, Access::Use::writes});
  launch.bind = [problem, config, prepared, max_blocks](const CallTensors& call, LaunchArguments& out) {
    const Tensor& a = tokens_of(call);
    const CallExtents extents = grouped_gemm::extents_of(call);
    const u32 k = narrow(extents.k);
    PrepareRowsParams params{};
    params.tokens = token_matrix(a);
    params.to = {{device_address(call.workspace) + prepared.codes_at},
                 {device_address(call.workspace) + prepared.scales_at},
                 weights::prepared_row_bytes(k),
                 weights::scale_k_blocks(k)};
    params.groups = group_params(call, extents.n).groups;
    if (config.gathered) {
      params.row_ids = {device_address(tensor_at(call, row_ids_index).data)};
      params.ids_end = narrow(a.shape[0] * problem.row_ids_divisor);
      params.ids_divisor = narrow(problem.row_ids_divisor);
    }
    out.set(params);
    out.grid.x = narrow(std::min(max_blocks, max_row_tiles(extents, config)));
    return true;
  };
  return launch;
}

PreparedRows add_preparation(const ProductProblem& problem, const Config& config, std::int64_t max_blocks,
                             PlannedCall& call) {
  const CallExtents extents = extents_of(problem);
  const u32 k = narrow(problem.k);
  const std::int64_t group_bytes = std::int64_t{weights::scale_k_blocks(k)} * weights::scale_block_bytes;
  PreparedRows prepared;
  prepared.codes_piece =
      add_piece(call, "prepared rows",
                static_cast<std::size_t>(
                    size_product(rows_of_call(extents), static_cast<std::int64_t>(weights::prepared_row_bytes(k)))));
  prepared.scales_piece =
      add_piece(call, "prepared scales",
                static_cast<std::size_t>(size_product(
                    size_product(max_row_tiles(extents, config), token_scale_groups(config)), group_bytes)));
  prepared.codes_at = call.workspace[prepared.codes_piece].offset;
  prepared.scales_at = call.workspace[prepared.scales_piece].offset;
  call.steps.emplace_back(preparing(problem, config, prepared, max_blocks));
  return prepared;
}

// --- the product

TensorMapDescription map_of(std::uint64_t address, ElementType element, Swizzle swizzle,
                            std::initializer_list<u64> extents, std::initializer_list<u64> strides,
                            std::initializer_list<u32> box) {
  TensorMapDescription map;
  map.address = address;
  map.element = element;
  map.swizzle = swizzle;
  map.rank = narrow(static_cast<std::int64_t>(extents.size()));
  std::copy(extents.begin(), extents.end(), map.extent);
  std::copy(strides.begin(), strides.end(), map.stride_bytes + 1);
  std::copy(box.begin(), box.end(), map.box);
  return map;
}

/// A slot of the ring: four products of 64 along K, each behind the copies of its scales.
Expectations expectations(const Config& config) {
  Expectations expected;
  expected.matrix_kind = "UTCOMMA";
  expected.min_matrix_instructions = static_cast<int>(weights::slot_products);
  expected.min_tma_loads = 4;
  expected.tensor.products = static_cast<int>(weights::slot_products);
  expected.tensor.scale_copies = static_cast<int>(weights::slot_scale_blocks * (1 + token_scale_groups(config)));
  expected.tensor.is_pair = config.blocks == 2;
  expected.tensor.min_commits = 2;
  // Chunks of two widths, each once in the code; where K is split, of each width that tiles have.
  constexpr std::int64_t warp_lanes = 32;
  expected.tensor.loaded_bytes =
      warp_lanes * pipeline::loaded_columns(shape_of(config), tile_widths_of(config)) * sizeof(float);
  return expected;
}

struct Product {
  ProductProblem problem;
  Config config;
  std::int64_t max_blocks = 0;
  std::size_t scales_at = 0;  ///< of packed weights
  PreparedRows prepared{};

  void bind(const CallTensors& call, LaunchArguments& out) const {
    const CallExtents extents = grouped_gemm::extents_of(call);
    Params params{};
    params.groups = group_params(call, tile_outputs(config));
    params.finish = finish_params(problem, call);
    params.profile = {profile_address(call)};
    params.token_factors = {device_address(tokens_of(call).global_scale)};
    params.gate_factors = {device_address(gate_of(call).global_scale)};
    params.up_factors = {device_address(up_of(call).global_scale)};
    params.k_steps = weights::k_steps(narrow(extents.k));
    params.row_tiles = row_tiles(config, extents.n);
    out.set(params);
    const std::int64_t cluster = pipeline::cluster_blocks(shape_of(config));
    const std::int64_t clusters = max_tiles(extents, config.block_tokens, tile_outputs(config));
    out.grid.x = narrow(std::min(max_blocks / cluster, clusters) * cluster);
    add_weight_maps(call, extents, out);
    add_row_maps(call, extents, out);
  }

  void add_weight_maps(const CallTensors& call, const CallExtents& extents, LaunchArguments& out) const {
    using namespace weights;
    const auto blocks = static_cast<u64>(expert_blocks(config, extents.n, extents.k));
    const auto experts = static_cast<u64>(extents.experts);
    out.add_map(offsetof(Params, weights), map_of(device_address(call.packed), ElementType::uint8, Swizzle::b128,
                                                  {slot_row_bytes, tile_rows, blocks, experts},
                                                  {slot_row_bytes, weight_block_bytes, blocks * weight_block_bytes},
                                                  {slot_row_bytes, tile_rows, 1, 1}));
    out.add_map(offsetof(Params, weight_scales),
                map_of(device_address(call.packed) + scales_at, ElementType::uint16, Swizzle::none,
                       {scale_elements, slot_scale_blocks, blocks, experts},
                       {scale_block_bytes, weight_scale_bytes, blocks * weight_scale_bytes},
                       {scale_elements, slot_scale_blocks, 1, 1}));
  }

  void add_row_maps(const CallTensors& call, const CallExtents& extents, LaunchArguments& out) const {
    using namespace weights;
    const u64 row_bytes = prepared_row_bytes(narrow(extents.k));
    const auto rows_map = [&](u32 box_rows) {
      return map_of(device_address(call.workspace) + prepared.codes_at, ElementType::uint8, Swizzle::b128,
                    {row_bytes, static_cast<u64>(rows_of_call(extents))}, {row_bytes}, {slot_row_bytes, box_rows});
    };
    out.add_map(offsetof(Params, few_tokens), rows_map(pipeline::few_token_rows));
    out.add_map(offsetof(Params, many_tokens), rows_map(pipeline::many_tensor_rows));
    const u64 k_blocks = scale_k_blocks(narrow(extents.k));
    const u64 groups = static_cast<u64>(max_row_tiles(extents, config)) * token_scale_groups(config);
    out.add_map(offsetof(Params, token_scales),
                map_of(device_address(call.workspace) + prepared.scales_at, ElementType::uint16, Swizzle::none,
                       {scale_elements, k_blocks, groups}, {scale_block_bytes, k_blocks * scale_block_bytes},
                       {scale_elements, loaded_scale_blocks(config), token_scale_groups(config)}));
  }

  [[nodiscard]] std::vector<Access> accesses() const {
    std::vector<Access> all{{Access::Memory::packed, codes_piece, Access::Use::reads},
                            {Access::Memory::packed, scales_piece, Access::Use::reads},
                            {Access::Memory::workspace, prepared.codes_piece, Access::Use::depends_on_previous},
                            {Access::Memory::workspace, prepared.scales_piece, Access::Use::depends_on_previous},
                            {Access::Memory::global_scale, tokens_index, Access::Use::depends_on_previous},
                            {Access::Memory::global_scale, gate_index, Access::Use::reads}};
    if (config.matrices == 2) {
      all.push_back({Access::Memory::global_scale, up_index, Access::Use::reads});
    }
    add_common_accesses(problem, all);
    if (config.profiled) {
      all.push_back({Access::Memory::tensor, profile_index, Access::Use::writes});
    }
    return all;
  }
};

KernelLaunch multiplying(const Product& product) {
  const pipeline::TensorShape shape = shape_of(product.config);
  KernelLaunch launch;
  launch.title = "multiply";
  launch.program = program(product.config);
  launch.expression = kernel_expression(product.config);
  launch.block.x = narrow(pipeline::threads(shape));
  launch.cluster.x = narrow(pipeline::cluster_blocks(shape));
  launch.shared_bytes = narrow(pipeline::grouped_shared_bytes(shape, narrow(product.problem.experts)));
  launch.dependent = product.config.dependent_launch;
  launch.persistent = true;
  launch.accesses = product.accesses();
  launch.bind = [product](const CallTensors& call, LaunchArguments& out) {
    product.bind(call, out);
    return true;
  };
  launch.expected = expectations(product.config);
  return launch;
}

}  // namespace

PlannedCall planned_call(const ProductProblem& problem, const Config& config, int multiprocessors) {
  PlannedCall call;
  call.strategy = "tcgen05";
  call.knobs = knob_table().knobs(config);
  call.work = work(problem, config);
  call.packed = packed_pieces(problem, config);
  call.packed_layout = config.matrices == 2 ? "nvfp4-sm100-1-experts" : "nvfp4-sm100-1-experts-single";
  call.packing = std::make_shared<const PlannedCall>(packing_call(problem, config));
  call.data_alignment = tma_alignment_bytes;
  Product product{problem, config, multiprocessors, call.packed[scales_piece].offset};
  add_status(problem, product.max_blocks, call);
  constexpr int blocks_per_multiprocessor = 4;  // of the preparation
  product.prepared = add_preparation(problem, config, std::int64_t{multiprocessors} * blocks_per_multiprocessor, call);
  call.steps.emplace_back(multiplying(product));
  return call;
}

}  // namespace thresher::strategies::grouped_gemm::tcgen05
