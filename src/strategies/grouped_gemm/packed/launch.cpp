#include "strategies/grouped_gemm/packed/launch.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "core/integers.hpp"
#include "pipeline/grouped/tokens.hpp"
#include "strategies/dual_gemm/packed/launches.hpp"
#include "strategies/dual_gemm/packed/program.hpp"
#include "strategies/gemm/gather.hpp"
#include "strategies/gemm/tensors.hpp"
#include "strategies/grouped_gemm/packed/device/pack.hpp"
#include "strategies/grouped_gemm/packed/host/work.hpp"
#include "strategies/grouped_gemm/packed/params.hpp"
#include "strategies/grouped_gemm/packed/program.hpp"
#include "strategies/launch_registers.hpp"

namespace thresher::strategies::grouped_gemm::packed {
namespace {

enum PackedPiece : std::size_t { blocks_piece, row_factors_piece };

bool folds(const Config& config) { return config.numerics == Numerics::fast; }

/// What is packed of one expert.
struct ExpertBytes {
  u32 k_blocks = 0;
  u32 output_groups = 0;
  std::int64_t blocks = 0;
  std::int64_t factors = 0;
};

ExpertBytes expert_bytes(Numerics numerics, int matrices, std::int64_t n, std::int64_t k) {
  ExpertBytes of;
  of.k_blocks = weight_k_blocks(numerics, static_cast<u32>(k));
  of.output_groups =
      static_cast<u32>(ceil_div(n, static_cast<std::int64_t>(pipeline::warpgroup_outputs) * (matrices == 2 ? 1 : 2)));
  of.blocks = std::int64_t{of.output_groups} * of.k_blocks * weight_block_bytes(numerics);
  of.factors = numerics == Numerics::fast ? std::int64_t{of.output_groups} * weights::fast::group_factors *
                                                static_cast<std::int64_t>(sizeof(float))
                                          : 0;
  return of;
}

std::vector<WorkspacePiece> packed_pieces(const ProductProblem& problem, const Config& config) {
  const ExpertBytes of = expert_bytes(config.numerics, config.matrices, problem.n, problem.k);
  std::vector<WorkspacePiece> pieces;
  add_piece(pieces, "packed weights", static_cast<std::size_t>(size_product(problem.experts, of.blocks)));
  if (folds(config)) {
    add_piece(pieces, "row factors", static_cast<std::size_t>(size_product(problem.experts, of.factors)));
  }
  return pieces;
}

/// A change of the layouts is another name.
std::string layout_name(const Config& config) {
  return std::string(folds(config) ? "nvfp4-fast-sm90-1" : "nvfp4-exact-sm90-1") +
         (config.matrices == 2 ? "-experts" : "-experts-single");
}

// --- packing

/// A view [E,N,K] of weights as packing kernels read one expert of it.
weights::Matrix matrix_of_expert(const Tensor& view) {
  const bool is_blocked = view.scales.layout == ScaleLayout::blocked;
  weights::Matrix matrix;
  matrix.values = {device_address(view.data)};
  matrix.scales = {device_address(view.scales.data)};
  matrix.row_bytes = static_cast<std::uint64_t>(view.strides[1] / 2);
  matrix.rows = static_cast<std::uint32_t>(view.shape[1]);
  matrix.scale_columns = static_cast<std::uint32_t>(view.shape[2] / 16);
  matrix.scale_stride = static_cast<std::uint32_t>(view.strides[1] / 16);
  matrix.scales_blocked = is_blocked ? 1 : 0;
  return matrix;
}

std::uint64_t scale_bytes_of_expert(const Tensor& view) {
  return view.scales.layout == ScaleLayout::blocked ? scale_bytes(view.shape[1], view.shape[2], ScaleLayout::blocked)
                                                    : static_cast<std::uint64_t>(view.strides[0] / 16);
}

PackExpertsParams pack_params(const CallTensors& call, Numerics numerics, int matrices, std::size_t factors_at) {
  const Tensor& gate = call.tensors[gate_index];
  const Tensor& up = call.tensors[matrices == 2 ? up_index : gate_index];
  const ExpertBytes of = expert_bytes(numerics, matrices, gate.shape[1], gate.shape[2]);
  PackExpertsParams params{};
  params.first.gate = matrix_of_expert(gate);
  params.first.up = matrix_of_expert(up);
  params.first.packed = {device_address(call.packed)};
  params.first.row_factors = {device_address(call.packed) + factors_at};
  params.first.k_blocks = of.k_blocks;
  params.first.output_groups = of.output_groups;
  params.gate_value_bytes = static_cast<std::uint64_t>(gate.strides[0] / 2);
  params.gate_scale_bytes = scale_bytes_of_expert(gate);
  params.up_value_bytes = static_cast<std::uint64_t>(up.strides[0] / 2);
  params.up_scale_bytes = scale_bytes_of_expert(up);
  params.packed_bytes = static_cast<std::uint64_t>(of.blocks);
  params.expert_factors = static_cast<std::uint32_t>(of.factors / static_cast<std::int64_t>(sizeof(float)));
  return params;
}

void add_reads(std::vector<Access>& accesses, std::size_t tensor, Format format, Access::Use use) {
  accesses.push_back({Access::Memory::tensor, tensor, use});
  if (format == Format::nvfp4) {
    accesses.push_back({Access::Memory::scales, tensor, use});
  }
}

KernelLaunch packing_launch(const Config& config, std::size_t factors_at, bool makes_factors) {
  KernelLaunch launch;
  launch.title = makes_factors ? "find the rows' factors" : "pack the weights";
  launch.program = packing_program();
  launch.expression =
      makes_factors ? row_factors_kernel_name(config.matrices) : pack_kernel_name(config.numerics, config.matrices);
  launch.block.x = weights::threads;
  launch.expected.uses_shared_memory = false;
  add_reads(launch.accesses, gate_index, Format::nvfp4, Access::Use::reads);
  if (config.matrices == 2) {
    add_reads(launch.accesses, up_index, Format::nvfp4, Access::Use::reads);
  }
  launch.accesses.push_back(
      {Access::Memory::packed, makes_factors ? row_factors_piece : blocks_piece, Access::Use::writes});
  if (folds(config) && !makes_factors) {
    launch.accesses.push_back({Access::Memory::packed, row_factors_piece, Access::Use::reads});
  }
  launch.bind = [numerics = config.numerics, matrices = config.matrices, factors_at, makes_factors](
                    const CallTensors& call, LaunchArguments& out) {
    PackExpertsParams params = pack_params(call, numerics, matrices, factors_at);
    constexpr u32 warps = weights::threads / 32;
    params.expert_blocks = makes_factors ? params.first.output_groups * weights::fast::group_factors / warps
                                         : params.first.output_groups * params.first.k_blocks;
    out.set(params);
    out.grid.x = params.expert_blocks * static_cast<std::uint32_t>(weight_extents(gate_of(call)).experts);
    return true;
  };
  return launch;
}

PlannedCall packing_call(const ProductProblem& problem, const Config& config) {
  PlannedCall call;
  call.strategy = "packed";
  call.packed = packed_pieces(problem, config);
  const std::size_t factors_at = folds(config) ? call.packed[row_factors_piece].offset : 0;
  if (folds(config)) {
    call.steps.emplace_back(packing_launch(config, factors_at, true));
  }
  call.steps.emplace_back(packing_launch(config, factors_at, false));
  return call;
}

// --- preparing tokens

/// Tokens row by row; slots lie one behind the other.
Tensor rows_of(const Tensor& a) {
  if (a.rank == 2) {
    return a;
  }
  Tensor rows = a;
  rows.rank = 2;
  rows.shape = {a.shape[0] * a.shape[1], a.shape[2]};
  rows.strides = {a.strides[1], a.strides[2]};
  return rows;
}

weights::Matrix token_matrix(const Tensor& a) {
  weights::Matrix matrix = weights::matrix_of(rows_of(a));
  if (a.rank == 3 && a.format == Format::nvfp4 && a.scales.layout == ScaleLayout::blocked) {
    matrix.slot_rows = static_cast<std::uint32_t>(a.shape[1]);
    matrix.slot_scales = static_cast<std::uint32_t>(scale_bytes(a.shape[1], a.shape[2], ScaleLayout::blocked));
  }
  return matrix;
}

/// Of the tokens that a call brings, at most.
std::int64_t max_tokens(const ProductProblem& problem) {
  return problem.layout == ProductRows::gathered ? problem.tokens
         : problem.layout == ProductRows::masked ? problem.experts * problem.rows
                                                 : problem.rows;
}

struct PreparedTokens {
  RowsInWorkspace rows;
  std::size_t factors_piece = 0;  ///< fast only
  std::size_t factors_offset = 0;
};

KernelLaunch folding(const ProductProblem& problem, const PreparedTokens& prepared) {
  KernelLaunch launch;
  launch.title = "fold the tokens";
  launch.expression = weights::fold_tokens_kernel_name(weights::token_format(problem.a));
  launch.block.x = weights::fold_threads;
  launch.shared_bytes = weights::fold_shared_bytes;
  launch.accesses.push_back({Access::Memory::workspace, prepared.factors_piece, Access::Use::writes});
  launch.bind = [prepared](const CallTensors& call, LaunchArguments& out) {
    const Tensor& a = tokens_of(call);
    weights::FoldTokensParams params = weights::fold_params(rows_of(a));
    params.tokens = token_matrix(a);
    params.out = {device_address(call.workspace) + prepared.rows.offset};
    params.factors = {device_address(call.workspace) + prepared.factors_offset};
    out.set(params);
    out.grid.x = params.tokens.rows;
    return true;
  };
  return launch;
}

KernelLaunch widening(const PreparedTokens& prepared) {
  KernelLaunch launch;
  launch.title = "widen the tokens";
  launch.expression = weights::widen_tokens_kernel_name();
  launch.block.x = weights::widen_threads;
  launch.expected.uses_shared_memory = false;
  launch.bind = [prepared](const CallTensors& call, LaunchArguments& out) {
    const Tensor& a = tokens_of(call);
    weights::WidenTokensParams params = weights::widen_params(rows_of(a));
    params.tokens = token_matrix(a);
    params.out = {device_address(call.workspace) + prepared.rows.offset};
    out.set(params);
    out.grid.x = weights::widen_blocks(rows_of(a));
    return true;
  };
  return launch;
}

PreparedTokens add_preparation(const ProductProblem& problem, const Config& config, PlannedCall& call) {
  const std::int64_t tokens = max_tokens(problem);
  PreparedTokens prepared;
  prepared.rows.row_bytes = weights::prepared_tokens(config.numerics, tokens, problem.k).row_bytes;
  prepared.rows.piece =
      add_piece(call, "prepared tokens", static_cast<std::size_t>(size_product(tokens, prepared.rows.row_bytes)));
  prepared.rows.offset = call.workspace[prepared.rows.piece].offset;
  if (folds(config)) {
    prepared.factors_piece = add_piece(call, "token factors", static_cast<std::size_t>(tokens) * sizeof(float));
    prepared.factors_offset = call.workspace[prepared.factors_piece].offset;
  }
  KernelLaunch launch = folds(config) ? folding(problem, prepared) : widening(prepared);
  launch.program = weights::preparation_program();
  launch.dependent = config.dependent_launch;
  add_reads(launch.accesses, tokens_index, problem.a, Access::Use::depends_on_previous);
  launch.accesses.push_back({Access::Memory::workspace, prepared.rows.piece, Access::Use::writes});
  call.steps.emplace_back(std::move(launch));
  return prepared;
}

// --- the product

machine::ElementType element_type(const Config& config) {
  return folds(config)                    ? machine::ElementType::uint8
         : config.operand == Number::bf16 ? machine::ElementType::bf16
                                          : machine::ElementType::fp16;
}

/// One slot of the ring: 64 rows of weights a warpgroup, 32 bytes along K an instruction. Weights come in bulk, tokens
/// through tensor maps.
Expectations expectations(const Config& config) {
  const int instruction_k = folds(config) ? 32 : 16;
  Expectations expected;
  expected.matrix_kind = folds(config) ? "QGMMA" : "HGMMA";
  expected.min_matrix_instructions =
      config.blocks_per_slot * static_cast<int>(weight_block_k(config.numerics)) / instruction_k;
  expected.min_tma_loads = 2;
  return expected;
}

struct Product {
  ProductProblem problem;
  Config config;
  std::int64_t max_blocks = 0;
  std::size_t row_factors_at = 0;
  std::optional<PreparedTokens> prepared{};
  std::optional<RowsInWorkspace> rows{};  ///< where tokens are read, if not from A

  void bind(const CallTensors& call, LaunchArguments& out) const {
    const CallExtents extents = extents_of(call);
    const ExpertBytes of = expert_bytes(config.numerics, config.matrices, extents.n, extents.k);
    const Tensor& a = tokens_of(call);
    Params params{};
    params.groups = group_params(call, tile_outputs(config));
    params.finish = finish_params(problem, call);
    params.weights = {device_address(call.packed)};
    params.profile = {profile_address(call)};
    params.token_scales = {device_address(a.global_scale)};
    params.gate_scales = {device_address(gate_of(call).global_scale)};
    params.up_scales = {device_address(up_of(call).global_scale)};
    if (folds(config)) {
      params.row_factors = {device_address(call.packed) + row_factors_at};
      params.token_factors = {device_address(call.workspace) + prepared->factors_offset};
    }
    params.expert_bytes = static_cast<std::uint64_t>(of.blocks);
    params.k_blocks = of.k_blocks;
    params.output_groups = of.output_groups;
    params.ids_divisor = static_cast<std::uint32_t>(problem.row_ids_divisor);
    params.result_scale = folds(config) ? 1.0F : 1.0F / weights::exact_result_scale;
    out.set(params);
    out.grid.x =
        static_cast<std::uint32_t>(std::min(max_blocks, max_tiles(extents, config.block_tokens, tile_outputs(config))));
    const machine::ElementType element = element_type(config);
    // Prepared rows are padded with zeros.
    const std::int64_t prepared_k = prepared ? prepared->rows.row_bytes / machine::element_bytes(element) : extents.k;
    const TokenRows tokens = rows ? token_rows(call, *rows, element, prepared_k) : token_rows(call, element);
    out.add_map(offsetof(Params, few_tokens), tokens_map(tokens, pipeline::few_token_rows));
    out.add_map(offsetof(Params, many_tokens), tokens_map(tokens, pipeline::many_token_rows(tile_widths_of(config))));
  }

  [[nodiscard]] std::vector<Access> accesses() const {
    std::vector<Access> all{{Access::Memory::packed, blocks_piece, Access::Use::reads},
                            {Access::Memory::global_scale, gate_index, Access::Use::reads}};
    if (config.matrices == 2) {
      all.push_back({Access::Memory::global_scale, up_index, Access::Use::reads});
    }
    if (rows) {
      all.push_back({Access::Memory::workspace, rows->piece, Access::Use::depends_on_previous});
    } else {
      all.push_back({Access::Memory::tensor, tokens_index, Access::Use::depends_on_previous});
    }
    if (problem.a == Format::nvfp4) {
      all.push_back({Access::Memory::global_scale, tokens_index, Access::Use::depends_on_previous});
    }
    if (folds(config)) {
      all.push_back({Access::Memory::packed, row_factors_piece, Access::Use::reads});
      all.push_back({Access::Memory::workspace, prepared->factors_piece, Access::Use::depends_on_previous});
    }
    add_common_accesses(problem, all);
    if (config.profiled) {
      all.push_back({Access::Memory::tensor, profile_index, Access::Use::writes});
    }
    return all;
  }
};

KernelLaunch multiplying(const Product& product) {
  const Config& config = product.config;
  KernelLaunch launch;
  launch.title = "multiply";
  launch.program = program(config);
  launch.expression = kernel_expression(config);
  launch.block.x = static_cast<std::uint32_t>(pipeline::threads(shape_of(config)));
  launch.shared_bytes = static_cast<std::uint32_t>(
      pipeline::grouped_shared_bytes(shape_of(config), static_cast<std::uint32_t>(product.problem.experts)));
  launch.registers = registers_at_launch(pipeline::threads(shape_of(config)) * config.blocks_resident,
                                         config.loader_registers, config.math_registers);
  launch.dependent = config.dependent_launch;
  launch.persistent = true;
  launch.accesses = product.accesses();
  launch.bind = [product](const CallTensors& call, LaunchArguments& out) {
    product.bind(call, out);
    return true;
  };
  launch.expected = expectations(config);
  return launch;
}

}  // namespace

PlannedCall planned_call(const ProductProblem& problem, const Config& config, int multiprocessors) {
  PlannedCall call;
  call.strategy = "packed";
  call.knobs = knob_table().knobs(config);
  call.work = work(problem, config);
  call.packed = packed_pieces(problem, config);
  call.packed_layout = layout_name(config);
  call.packing = std::make_shared<const PlannedCall>(packing_call(problem, config));
  call.data_alignment = tma_alignment_bytes;
  Product product{problem, config, std::int64_t{multiprocessors} * config.blocks_resident};
  product.row_factors_at = folds(config) ? call.packed[row_factors_piece].offset : 0;
  add_status(problem, product.max_blocks, call);
  if (folds(config) || problem.a == Format::nvfp4) {
    product.prepared = add_preparation(problem, config, call);
    product.rows = product.prepared->rows;
  } else {
    call.alignments = {{tokens_index, tma_alignment_bytes}};
  }
  if (config.gathered) {
    product.rows = add_gathering(problem, product.rows, config.dependent_launch, call);
  }
  call.steps.emplace_back(multiplying(product));
  return call;
}

}  // namespace thresher::strategies::grouped_gemm::packed
