#include "strategies/gemm/wgmma_dequant/plan.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "core/integers.hpp"
#include "pipeline/grouped/tokens.hpp"
#include "strategies/gemm/tensors.hpp"
#include "strategies/gemm/wgmma_dequant/kernel.hpp"
#include "strategies/gemm/wgmma_dequant/params.hpp"
#include "strategies/launch_registers.hpp"

namespace thresher::strategies::gemm::wgmma_dequant {
namespace {

machine::ElementType element_type(const Config& config) {
  return config.numerics == Numerics::fast ? machine::ElementType::uint8
         : config.operand == Number::bf16  ? machine::ElementType::bf16
                                           : machine::ElementType::fp16;
}

/// DenseParams::tokens.
machine::TensorMapDescription blocks_map(const Config& config, const TokenRows& tokens) {
  machine::TensorMapDescription map = tokens_map(tokens, narrow(config.block_tokens));
  map.extent[0] = map.box[0];
  map.extent[2] = static_cast<std::uint64_t>(ceil_div(tokens.k, std::int64_t{map.box[0]}));
  map.stride_bytes[2] = token_row_bytes;
  map.box[2] = narrow(config.blocks_per_slot);
  return map;
}

/// DenseParams::ragged_tokens.
machine::TensorMapDescription ragged_map(const Config& config, const TokenRows& tokens) {
  machine::TensorMapDescription map = tokens_map(tokens, narrow(config.block_tokens));
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
  std::int64_t max_blocks = 0;  ///< grouped
  std::size_t row_factors_at = 0;
  std::optional<PreparedTokens> prepared{};
  std::optional<RowsInWorkspace> rows{};  ///< where tokens are read, if not from A

  void bind(const CallTensors& call, LaunchArguments& out) const {
    if (config.grouped) {
      bind_grouped(call, out);
    } else {
      bind_dense(call, out);
    }
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
    if (config.numerics == Numerics::fast) {
      all.push_back({Access::Memory::packed, row_factors_piece, Access::Use::reads});
      all.push_back({Access::Memory::workspace, prepared->factors_piece, Access::Use::depends_on_previous});
    }
    add_common_accesses(problem, all);
    if (config.profiled) {
      all.push_back({Access::Memory::tensor, profile_index, Access::Use::writes});
    }
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
  [[nodiscard]] TokenRows tokens(const CallTensors& call, std::int64_t k) const {
    const machine::ElementType element = element_type(config);
    const std::int64_t prepared_k = prepared ? prepared->rows.row_bytes / machine::element_bytes(element) : k;
    return rows ? token_rows(call, *rows, element, prepared_k) : token_rows(call, element);
  }

  void bind_dense(const CallTensors& call, LaunchArguments& out) const {
    const CallExtents extents = extents_of(call);
    const std::int64_t c_row_stride = output_of(call).strides[0];
    DenseParams params{};
    set_common(params, call, expert_bytes(config, extents.n, extents.k));
    params.c = {device_address(output_of(call).data)};
    params.c_row_stride = static_cast<std::uint64_t>(c_row_stride);
    params.m = narrow(extents.rows);
    params.n = narrow(extents.n);
    params.ragged_slot = rows ? no_ragged_slot : ragged_slot(config, extents.k);
    params.c_wide = extents.n % 8 == 0 && c_row_stride % 8 == 0 ? 1 : 0;
    params.token_tiles = narrow(ceil_div(extents.rows, config.block_tokens));
    params.output_tiles = narrow(ceil_div(extents.n, tile_outputs(config)));
    params.alpha = problem.activation->alpha;
    params.limit = problem.activation->limit;
    params.up_offset = problem.activation->up_offset;
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
    params.ids_divisor = narrow(problem.row_ids_divisor);
    out.set(params);
    out.grid.x = narrow(std::min(max_blocks, max_tiles(extents, config.block_tokens, tile_outputs(config))));
    const TokenRows from = tokens(call, extents.k);
    out.add_map(offsetof(GroupedParams, few_tokens), tokens_map(from, pipeline::few_token_rows));
    out.add_map(offsetof(GroupedParams, many_tokens),
                tokens_map(from, pipeline::many_token_rows(tile_widths_of(config))));
  }
};

KernelLaunch multiplying(const PackedLaunch& product) {
  const Config& config = product.config;
  const pipeline::Shape shape = shape_of(config);
  KernelLaunch launch;
  launch.title = "multiply";
  launch.program = program(config);
  launch.expression = kernel_expression(config);
  launch.block.x = narrow(pipeline::threads(shape));
  launch.cluster.x = narrow(config.split_k);
  launch.shared_bytes = narrow(config.grouped ? pipeline::grouped_shared_bytes(shape, narrow(product.problem.experts))
                                              : pipeline::shared_bytes(shape));
  launch.registers = registers_at_launch(pipeline::threads(shape) * config.blocks_resident, config.loader_registers,
                                         config.math_registers);
  launch.dependent = config.dependent_launch;
  launch.persistent = config.grouped;
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
  call.data_alignment = tma_alignment_bytes;
  add_packing(problem, config, call);
  PackedLaunch product{problem, config, std::int64_t{multiprocessors} * config.blocks_resident};
  if (config.numerics == Numerics::fast) {
    product.row_factors_at = call.packed[row_factors_piece].offset;
  }
  add_status(problem, product.max_blocks, call);
  product.prepared = add_preparation(problem, config, call);
  if (product.prepared) {
    product.rows = product.prepared->rows;
    call.preparation_steps = config.grouped ? 0 : 1;
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
