// The launches of `packed`: weights are packed once; tokens are prepared, and gathered, in each call that needs it.
#include <algorithm>
#include <cstddef>
#include <optional>

#include "core/integers.hpp"
#include "pipeline/grouped/tokens.hpp"
#include "strategies/gemm/gather.hpp"
#include "strategies/gemm/nvfp4_operands.hpp"
#include "strategies/gemm/tensors.hpp"
#include "strategies/gemm/wgmma_dequant/device/dequantize_tokens.hpp"
#include "strategies/gemm/wgmma_dequant/kernel.hpp"
#include "strategies/gemm/wgmma_dequant/params.hpp"

namespace thresher::strategies::gemm::wgmma_dequant {
namespace {

// --- packing

/// The bytes that are packed of one expert.
struct ExpertBytes {
  u32 k_blocks = 0;
  u32 output_groups = 0;
  std::int64_t blocks = 0;
  std::int64_t factors = 0;  ///< fast only
};

enum PackedPiece : std::size_t { blocks_piece, row_factors_piece };

ExpertBytes expert_bytes(const Config& config, std::int64_t n, std::int64_t k) {
  ExpertBytes bytes;
  bytes.k_blocks = weight_k_blocks(config.numerics, narrow(k));
  bytes.output_groups = narrow(ceil_div(n, std::int64_t{warpgroup_outputs(config.matrices)}));
  bytes.blocks = std::int64_t{bytes.output_groups} * bytes.k_blocks * weight_block_bytes(config.numerics);
  if (config.numerics == Numerics::fast) {
    bytes.factors = std::int64_t{bytes.output_groups} * fast::group_factors * static_cast<std::int64_t>(sizeof(float));
  }
  return bytes;
}

/// A change of the layouts is another name.
std::string layout_name(const Config& config) {
  const std::string name = config.numerics == Numerics::fast ? "nvfp4-fast-sm90-1" : "nvfp4-exact-sm90-2";
  return config.dense ? name : name + (config.matrices == 2 ? "-experts" : "-experts-single");
}

PackExpertsParams pack_params(const CallTensors& call, const Config& config, std::size_t factors_at) {
  const Tensor& gate = call.tensors[gate_index];
  const Tensor& up = call.tensors[config.matrices == 2 ? up_index : gate_index];
  const WeightExtents extents = weight_extents(gate);
  const ExpertBytes bytes = expert_bytes(config, extents.n, extents.k);
  PackExpertsParams params{};
  params.first.gate = weight_matrix(gate);
  params.first.up = weight_matrix(up);
  params.first.packed = {device_address(call.packed)};
  params.first.row_factors = {device_address(call.packed) + factors_at};
  params.first.k_blocks = bytes.k_blocks;
  params.first.output_groups = bytes.output_groups;
  if (!config.dense) {
    set_expert_strides(gate, up, params);
    params.packed_bytes = static_cast<std::uint64_t>(bytes.blocks);
    params.expert_factors = narrow(bytes.factors / static_cast<std::int64_t>(sizeof(float)));
  }
  return params;
}

void bind_packing(const CallTensors& call, const Config& config, std::size_t factors_at, Packing packing,
                  LaunchArguments& out) {
  PackExpertsParams params = pack_params(call, config, factors_at);
  constexpr u32 warps = threads / 32;
  params.expert_blocks = packing == Packing::factors ? params.first.output_groups * fast::group_factors / warps
                                                     : params.first.output_groups * params.first.k_blocks;
  if (config.dense) {
    out.set(params.first);
  } else {
    out.set(params);
  }
  out.grid.x = params.expert_blocks * narrow(weight_extents(gate_of(call)).experts);
}

KernelLaunch packing_launch(const Config& config, std::size_t factors_at, Packing packing) {
  KernelLaunch launch = gemm::packing_launch(
      packing == Packing::factors ? "find the rows' factors" : "pack the weights", preparation_program(),
      config.dense ? pack_kernel_name(packing) : pack_experts_kernel_name(packing, config.matrices), threads,
      config.matrices);
  launch.accesses.push_back(
      {Access::Memory::packed, packing == Packing::factors ? row_factors_piece : blocks_piece, Access::Use::writes});
  if (packing == Packing::fast) {
    launch.accesses.push_back({Access::Memory::packed, row_factors_piece, Access::Use::reads});
  }
  launch.bind = [config, factors_at, packing](const CallTensors& call, LaunchArguments& out) {
    bind_packing(call, config, factors_at, packing, out);
    return true;
  };
  return launch;
}

/// Adds to `call` the pieces that packing makes of the weights once, and the call that does it.
void add_packing(const ProductProblem& problem, const Config& config, PlannedCall& call) {
  const ExpertBytes bytes = expert_bytes(config, problem.n, problem.k);
  const bool is_fast = config.numerics == Numerics::fast;
  add_piece(call.packed, "packed weights", static_cast<std::size_t>(size_product(problem.experts, bytes.blocks)));
  if (is_fast) {
    add_piece(call.packed, "row factors", static_cast<std::size_t>(size_product(problem.experts, bytes.factors)));
  }
  const std::size_t factors_at = is_fast ? call.packed[row_factors_piece].offset : 0;
  std::vector<Step> steps;
  if (is_fast) {
    steps.emplace_back(packing_launch(config, factors_at, Packing::factors));
  }
  steps.emplace_back(packing_launch(config, factors_at, is_fast ? Packing::fast : Packing::exact));
  set_packing("packed", layout_name(config), std::move(steps), call);
}

// --- tokens

struct PreparedTokens {
  RowsInWorkspace rows;
  std::size_t factors_piece = 0;  ///< fast only
  std::size_t factors_offset = 0;
};

TokenFormat token_format(Format format) {
  return format == Format::nvfp4 ? TokenFormat::nvfp4 : format == Format::bf16 ? TokenFormat::bf16 : TokenFormat::fp16;
}

/// The maximum of a call's tokens.
std::int64_t max_tokens(const ProductProblem& problem) {
  return problem.layout == ProductRows::gathered ? problem.tokens
         : problem.layout == ProductRows::masked ? problem.experts * problem.rows
                                                 : problem.rows;
}

/// Whether rows can be read as WholeNvfp4Row and WholeRow do. The operation aligned their first value to 16 bytes.
bool are_whole(const QuantizeTokensParams& params, Format format) {
  const bool whole_words = params.tokens.scale_columns % 4 == 0 && params.tokens.row_bytes % 8 == 0;
  const bool whole_scales = format != Format::nvfp4 || params.tokens.scales.address % 4 == 0;
  return whole_words && whole_scales;
}

KernelLaunch quantizing(Format format, const PreparedTokens& prepared) {
  KernelLaunch launch = preparation_launch("quantize the tokens", preparation_program(),
                                           quantize_tokens_kernel_name(token_format(format)), quantize_threads);
  launch.expected.uses_shared_memory = true;
  launch.shared_bytes = quantize_shared_bytes;
  launch.accesses.push_back({Access::Memory::workspace, prepared.factors_piece, Access::Use::writes});
  launch.bind = [format, prepared](const CallTensors& call, LaunchArguments& out) {
    QuantizeTokensParams params{};
    params.tokens = token_matrix(tokens_of(call));
    params.out = {device_address(call.workspace) + prepared.rows.offset};
    params.factors = {device_address(call.workspace) + prepared.factors_offset};
    params.groups = narrow(prepared.rows.row_bytes / 16);
    params.whole = are_whole(params, format) ? 1 : 0;
    out.set(params);
    out.grid.x = params.tokens.rows;
    return true;
  };
  return launch;
}

std::uint32_t dequantize_blocks(const DequantizeTokensParams& params) {
  constexpr std::int64_t block_elements = std::int64_t{8} * dequantize_parts * dequantize_threads;
  return narrow(ceil_div(std::int64_t{params.tokens.rows} * params.row_blocks * block_k, block_elements));
}

/// NVFP4 or 16-bit tokens to 16 bits.
KernelLaunch dequantizing(bool pads, const PreparedTokens& prepared) {
  KernelLaunch launch =
      pads ? preparation_launch("pad the tokens", preparation_program(), pad_tokens_kernel_name(), pad_threads)
           : preparation_launch("dequantize the tokens", preparation_program(), dequantize_tokens_kernel_name(),
                                dequantize_threads);
  launch.bind = [pads, prepared](const CallTensors& call, LaunchArguments& out) {
    DequantizeTokensParams params{};
    params.tokens = token_matrix(tokens_of(call));
    params.out = {device_address(call.workspace) + prepared.rows.offset};
    params.row_blocks = narrow(prepared.rows.row_bytes / token_row_bytes);
    out.set(params);
    out.grid.x = pads ? pad_blocks(params.row_blocks) * params.tokens.rows : dequantize_blocks(params);
    return true;
  };
  return launch;
}

/// Adds the launch that prepares tokens, where there is one, and its pieces of the workspace.
std::optional<PreparedTokens> add_preparation(const ProductProblem& problem, const Config& config, PlannedCall& call) {
  const Preparation kind = preparation(config, problem.a, problem.k);
  if (kind == Preparation::none) {
    return std::nullopt;
  }
  const bool quantizes = kind == Preparation::quantize;
  const std::int64_t tokens = max_tokens(problem);
  PreparedTokens prepared;
  prepared.rows = add_rows("prepared tokens", tokens,
                           ceil_div(problem.k, std::int64_t{weight_block_k(config.numerics)}) * token_row_bytes, call);
  if (quantizes) {
    prepared.factors_piece = add_piece(call, "token factors", static_cast<std::size_t>(tokens) * sizeof(float));
    prepared.factors_offset = call.workspace[prepared.factors_piece].offset;
  }
  KernelLaunch launch = quantizes ? quantizing(problem.a, prepared) : dequantizing(kind == Preparation::pad, prepared);
  launch.dependent = config.dependent_launch;
  add_reads(launch.accesses, tokens_index, problem.a, Access::Use::depends_on_previous);
  launch.accesses.push_back({Access::Memory::workspace, prepared.rows.piece, Access::Use::writes});
  call.steps.emplace_back(std::move(launch));
  return prepared;
}

// --- the product

machine::ElementType element_type(const Config& config) {
  return config.numerics == Numerics::fast ? machine::ElementType::uint8
         : config.operand == Number::bf16  ? machine::ElementType::bf16
                                           : machine::ElementType::fp16;
}

/// DenseParams::tokens.
machine::TensorMapDescription blocks_map(const Config& config, const OperandRows& tokens) {
  machine::TensorMapDescription map = rows_map(tokens, narrow(config.block_tokens));
  map.extent[0] = map.box[0];
  map.extent[2] = static_cast<std::uint64_t>(ceil_div(tokens.k, std::int64_t{map.box[0]}));
  map.stride_bytes[2] = token_row_bytes;
  map.box[2] = narrow(config.blocks_per_slot);
  return map;
}

/// DenseParams::ragged_tokens.
machine::TensorMapDescription ragged_map(const Config& config, const OperandRows& tokens) {
  machine::TensorMapDescription map = rows_map(tokens, narrow(config.block_tokens));
  map.rank = 2;
  return map;
}

/// DenseParams::ragged_slot of tokens that are read where the caller has them.
std::uint32_t ragged_slot(const Config& config, std::int64_t k) {
  return k % block_k == 0 ? no_ragged_slot : narrow(k / (std::int64_t{block_k} * config.blocks_per_slot));
}

/// One stage: 64 rows of weights a warpgroup, 32 bytes along K an instruction, all tokens of the tile at once. Weights
/// come in bulk, tokens through tensor maps.
Expectations expectations(const Config& config) {
  const bool is_fast = config.numerics == Numerics::fast;
  Expectations expected;
  expected.matrix_kind = is_fast ? "QGMMA" : "HGMMA";
  expected.min_matrix_instructions = static_cast<int>(stage_k(config)) / (is_fast ? 32 : 16);
  expected.min_tma_loads = 2;
  return expected;
}

struct PackedLaunch {
  ProductProblem problem;
  Config config;
  std::int64_t max_blocks = 0;  ///< of persistent ones
  std::size_t row_factors_at = 0;
  std::optional<PreparedTokens> prepared{};
  std::optional<RowsInWorkspace> rows{};  ///< where tokens are read, if not from A

  void bind(const CallTensors& call, LaunchArguments& out) const {
    if (config.dense) {
      bind_dense(call, out);
    } else {
      bind_grouped(call, out);
    }
  }

  [[nodiscard]] std::vector<Access> accesses() const {
    std::vector<Access> all{{Access::Memory::packed, blocks_piece, Access::Use::reads}};
    add_weight_reads(config.matrices, Access::Memory::global_scale, all);
    if (rows) {
      all.push_back({Access::Memory::workspace, rows->piece, Access::Use::depends_on_previous});
    } else {
      all.push_back({Access::Memory::tensor, tokens_index, Access::Use::depends_on_previous});
    }
    if (problem.a == Format::nvfp4) {
      all.push_back({Access::Memory::global_scale, tokens_index, Access::Use::depends_on_previous});
    }
    if (config.numerics == Numerics::fast) {
      all.push_back({Access::Memory::packed, row_factors_piece, Access::Use::reads});
      all.push_back({Access::Memory::workspace, prepared->factors_piece, Access::Use::depends_on_previous});
    }
    add_common_accesses(problem, config.profiled, all);
    return all;
  }

 private:
  /// The members that both kernels' parameters have.
  template <class Params>
  void set_common(Params& params, const CallTensors& call, const ExpertBytes& bytes) const {
    params.weights = {device_address(call.packed)};
    params.profile = {profile_address(call)};
    params.scales.tokens = {device_address(tokens_of(call).global_scale)};
    params.scales.gate = {device_address(gate_of(call).global_scale)};
    params.scales.up = {device_address(up_of(call).global_scale)};
    if (config.numerics == Numerics::fast) {
      params.scales.row_factors = {device_address(call.packed) + row_factors_at};
      params.scales.token_factors = {device_address(call.workspace) + prepared->factors_offset};
    }
    params.k_blocks = bytes.k_blocks;
    params.output_groups = bytes.output_groups;
    params.result_scale = config.numerics == Numerics::fast ? 1.0F : 1.0F / exact_result_scale;
  }

  /// Prepared rows are padded with zeros.
  [[nodiscard]] OperandRows tokens(const CallTensors& call, std::int64_t k) const {
    const machine::ElementType element = element_type(config);
    const std::int64_t prepared_k = prepared ? prepared->rows.row_bytes / machine::element_bytes(element) : k;
    return rows ? token_rows(call, *rows, element, prepared_k) : token_rows(call, element);
  }

  void bind_dense(const CallTensors& call, LaunchArguments& out) const {
    const CallExtents extents = extents_of(call);
    DenseParams params{};
    set_common(params, call, expert_bytes(config, extents.n, extents.k));
    set_static_tiles(problem, call, config.block_tokens, tile_outputs(config), params);
    params.ragged_slot = rows ? no_ragged_slot : ragged_slot(config, extents.k);
    out.set(params);
    out.grid.x = params.token_tiles * params.output_tiles * narrow(config.split_k);
    out.add_map(offsetof(DenseParams, tokens), blocks_map(config, tokens(call, extents.k)));
    if (params.ragged_slot != no_ragged_slot) {
      out.add_map(offsetof(DenseParams, ragged_tokens), ragged_map(config, tokens(call, extents.k)));
    }
  }

  void bind_grouped(const CallTensors& call, LaunchArguments& out) const {
    const CallExtents extents = extents_of(call);
    const ExpertBytes bytes = expert_bytes(config, extents.n, extents.k);
    GroupedParams params{};
    set_common(params, call, bytes);
    params.groups = group_params(call, tile_outputs(config));
    params.finish = finish_params(problem, call);
    params.expert_bytes = static_cast<std::uint64_t>(bytes.blocks);
    params.k_steps = k_steps(config, narrow(extents.k));
    params.ids_divisor = narrow(problem.row_ids_divisor);
    out.set(params);
    const std::int64_t tiles = max_tiles(extents, config.block_tokens, tile_outputs(config));
    out.grid.x = narrow(is_persistent(config) ? std::min(max_blocks, tiles) : tiles * config.split_k);
    const OperandRows from = tokens(call, extents.k);
    out.add_map(offsetof(GroupedParams, few_tokens), rows_map(from, pipeline::few_token_rows));
    out.add_map(offsetof(GroupedParams, many_tokens),
                rows_map(from, pipeline::many_token_rows(tile_widths_of(config))));
  }
};

/// The largest call has a cluster for each tile.
std::int64_t max_blocks(const ProductProblem& problem, const Config& config) {
  return max_tiles(extents_of(problem), config.block_tokens, tile_outputs(config)) * config.split_k;
}

KernelLaunch multiplying(const PackedLaunch& product) {
  const Config& config = product.config;
  const pipeline::Shape shape = shape_of(config);
  KernelLaunch launch = product_launch(program(config), shape, config.blocks_resident,
                                       config.dense || config.static_tiles
                                           ? pipeline::shared_bytes(shape)
                                           : pipeline::grouped_shared_bytes(shape, narrow(product.problem.experts)));
  launch.dependent = config.dependent_launch;
  launch.releases_after_wait = config.dependent_launch && !config.dense && !config.static_tiles;
  launch.accesses = product.accesses();
  launch.bind = [product](const CallTensors& call, LaunchArguments& out) {
    product.bind(call, out);
    return true;
  };
  launch.expected = expectations(config);
  return launch;
}

}  // namespace

/// The grouped kernel's maps bring zeros beyond K themselves. In the dense kernel rows of 16-bit tokens that are no
/// whole blocks begin anywhere in a line of 128 bytes. TMA then reads one more line for each of them. Measured, that
/// costs more than copying them together once, but for the fewest.
Preparation preparation(const Config& config, Format tokens, std::int64_t k) {
  constexpr int few_tokens = 8;
  if (config.numerics == Numerics::fast) {
    return Preparation::quantize;
  }
  if (tokens == Format::nvfp4) {
    return Preparation::dequantize;
  }
  return config.dense && k % block_k != 0 && config.block_tokens > few_tokens ? Preparation::pad : Preparation::none;
}

PlannedCall planned_call(const ProductProblem& problem, const Config& config, int multiprocessors) {
  PlannedCall call;
  call.data_alignment = tma_alignment_bytes;
  add_packing(problem, config, call);
  PackedLaunch product{problem, config, std::int64_t{multiprocessors} * config.blocks_resident};
  if (config.numerics == Numerics::fast) {
    product.row_factors_at = call.packed[row_factors_piece].offset;
  }
  add_status(problem, is_persistent(config) ? product.max_blocks : max_blocks(problem, config), call);
  product.prepared = add_preparation(problem, config, call);
  if (product.prepared) {
    product.rows = product.prepared->rows;
    call.preparation_steps = config.dense ? 1 : 0;
  }
  const Preparation kind = preparation(config, problem.a, problem.k);
  if (kind == Preparation::none || kind == Preparation::pad) {
    call.alignments = {{tokens_index, tma_alignment_bytes}};
  }
  if (config.gathered) {
    product.rows = add_gathering(problem, product.rows, config.dependent_launch, call);
  }
  call.steps.emplace_back(multiplying(product));
  return call;
}

}  // namespace thresher::strategies::gemm::wgmma_dequant
