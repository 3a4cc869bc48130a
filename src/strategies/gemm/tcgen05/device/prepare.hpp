#pragma once
/// The kernels that run ahead of the product. NVFP4 weights become row tiles once, when a model is loaded. In every
/// call that needs it, NVFP4 tokens become rows without gaps, with scales in blocks for each tile.
#include "machine/launch.hpp"
#include "pipeline/grouped/row_tiles.hpp"
#include "strategies/gemm/device/nvfp4.hpp"
#include "strategies/gemm/tcgen05/device/layout.hpp"

namespace thresher::strategies::gemm::tcgen05::block_scaled {

// --- weights

using machine::Global;
using machine::i64;

struct PackParams {
  Nvfp4Matrix gate;
  Nvfp4Matrix up;
  Global<u8> codes;   ///< packed_code_bytes
  Global<u8> scales;  ///< packed_scale_bytes
  u32 k_steps = 0;
};

inline constexpr u32 pack_threads = 256;

/// 16 codes and their scale, its sign moved into them; zeros beyond the matrix.
struct ScaledGroup {
  machine::Vector<u32, 2> codes;
  u32 scale;
};
TH_DEVICE ScaledGroup scaled_group(const Nvfp4Matrix& matrix, u32 row, u32 column) {
  if (row >= matrix.rows || column >= matrix.scale_columns) {
    return {};
  }
  ScaledGroup group{group_codes(matrix, row, column), scale_code(matrix, row, column)};
  const u32 signs = (group.scale & 0x80U) != 0 ? 0x88888888U : 0;
  group.codes.at[0] ^= signs;
  group.codes.at[1] ^= signs;
  group.scale &= 0x7FU;
  return group;
}

/// The rows of a tile: gate and up as layout.hpp has them, or outputs of one matrix in their order.
struct GateAndUp {
  static constexpr u32 outputs = tile_rows_outputs;
  static TH_DEVICE constexpr Source source_of(u32 row) { return source(row); }
};
struct OneMatrix {
  static constexpr u32 outputs = block_rows;
  static TH_DEVICE constexpr Source source_of(u32 row) { return {false, row}; }
};

/// One block of threads makes one block of 128 rows by 256 along K, and its scales.
template <class Rows>
TH_DEVICE void pack_block(const PackParams& params, u32 block) {
  constexpr u32 columns = slot_k / 16;
  const u32 tile = block / params.k_steps;
  const u32 first_column = (block - tile * params.k_steps) * columns;
  const Global<u8> codes = params.codes.offset(static_cast<i64>(block) * weight_block_bytes);
  const Global<u8> scales = params.scales.offset(static_cast<i64>(block) * weight_scale_bytes);
  for (u32 i = machine::launch::thread_index(); i < block_rows * columns; i += pack_threads) {
    const u32 row = i / columns;
    const u32 column = i % columns;
    const Source from = Rows::source_of(row);
    const ScaledGroup group =
        scaled_group(from.up ? params.up : params.gate, tile * Rows::outputs + from.output, first_column + column);
    codes.as<machine::Vector<u32, 2>>().store(i, group.codes);
    scales.store(column / 4 * scale_block_bytes + scale_byte(row, column), static_cast<u8>(group.scale));
  }
}

/// The grid has row_tiles · k_steps.
TH_KERNEL(pack_threads, 1) pack_kernel(TH_GRID_CONSTANT const PackParams params) {
  pack_block<GateAndUp>(params, machine::launch::block_index().x);
}

struct PackExpertsParams {
  PackParams first;          ///< of the first expert
  u64 gate_value_bytes = 0;  ///< from one expert to the next
  u64 gate_scale_bytes = 0;
  u64 up_value_bytes = 0;
  u64 up_scale_bytes = 0;
  u32 expert_blocks = 0;  ///< of 128 rows by 256 along K, of an expert: row_tiles · k_steps
};

/// The grid has a block of threads for each block of each expert.
template <int matrices>
TH_KERNEL(pack_threads, 1)
pack_experts_kernel(TH_GRID_CONSTANT const PackExpertsParams params) {
  const u32 expert = machine::launch::block_index().x / params.expert_blocks;
  const auto behind = [&](u64 bytes) { return static_cast<machine::i64>(expert * bytes); };
  PackParams own = params.first;
  own.gate.values = own.gate.values.offset(behind(params.gate_value_bytes));
  own.gate.scales = own.gate.scales.offset(behind(params.gate_scale_bytes));
  own.up.values = own.up.values.offset(behind(params.up_value_bytes));
  own.up.scales = own.up.scales.offset(behind(params.up_scale_bytes));
  own.codes = own.codes.offset(behind(u64{params.expert_blocks} * weight_block_bytes));
  own.scales = own.scales.offset(behind(u64{params.expert_blocks} * weight_scale_bytes));
  const u32 block = machine::launch::block_index().x - expert * params.expert_blocks;
  if constexpr (matrices == 2) {
    pack_block<GateAndUp>(own, block);
  } else {
    pack_block<OneMatrix>(own, block);
  }
}

// --- tokens

/// Where prepared tokens go.
struct PreparedTokens {
  Global<u8> codes;   ///< rows of row_bytes
  Global<u8> scales;  ///< groups of 128 rows, blocks along K first
  u64 row_bytes = 0;  ///< prepared_row_bytes
  u32 k_blocks = 0;   ///< scale_k_blocks
};

/// Four groups of 16 of one token.
struct PreparedPart {
  u32 source;     ///< the token; beyond the last there are zeros
  u32 scale_row;  ///< of the prepared scales
  u32 block;      ///< of 64 along K
};

/// The part's scales, and its codes to row `row` of the prepared ones where `keeps_codes`.
TH_DEVICE void prepare_part(const PreparedTokens& to, const Nvfp4Matrix& tokens, const PreparedPart& part, u32 row,
                            bool keeps_codes) {
  u32 scales = 0;
  TH_UNROLL
  for (u32 i = 0; i < 4; ++i) {
    const u32 column = part.block * 4 + i;
    const ScaledGroup group = scaled_group(tokens, part.source, column);
    scales |= group.scale << (i * 8);
    if (keeps_codes && u64{column} * 8 < to.row_bytes) {
      to.codes.offset(static_cast<i64>(row * to.row_bytes)).as<machine::Vector<u32, 2>>().store(column, group.codes);
    }
  }
  const u64 block = u64{part.scale_row / 128} * to.k_blocks + part.block;
  to.scales.offset(static_cast<i64>(block * scale_block_bytes + scale_byte(part.scale_row, 0)))
      .as<u32>()
      .store(0, scales);
}

struct PrepareTokensParams {
  Nvfp4Matrix tokens;
  Global<u8> codes;      ///< rows of prepared_row_bytes
  Global<u8> scales;     ///< prepared_scale_bytes
  u64 row_bytes = 0;     ///< prepared_row_bytes
  u32 k_blocks = 0;      ///< scale_k_blocks
  u32 block_tokens = 0;  ///< of a tile
  u32 scale_rows = 0;    ///< 128 · prepared_scale_groups
};

inline constexpr u32 prepare_threads = 128;

/// Threads that it takes: one for each row of the scales and 64 along K.
TH_DEVICE constexpr u64 prepare_items(const PrepareTokensParams& params) {
  return u64{params.scale_rows} * params.k_blocks;
}

/// A thread's token is beyond the last where its tile or the tokens end.
TH_DEVICE void prepare_item(const PrepareTokensParams& params, u64 item) {
  const u32 scale_row = static_cast<u32>(item / params.k_blocks);
  const u32 block = static_cast<u32>(item - u64{scale_row} * params.k_blocks);
  const u32 tile_scale_rows = scale_groups(params.block_tokens) * 128;
  const u32 tile = scale_row / tile_scale_rows;
  const u32 row = scale_row - tile * tile_scale_rows;
  const u32 token = row < params.block_tokens ? tile * params.block_tokens + row : params.tokens.rows;
  prepare_part({params.codes, params.scales, params.row_bytes, params.k_blocks}, params.tokens,
               {token, scale_row, block}, token, token < params.tokens.rows);
}

TH_KERNEL(prepare_threads, 1) prepare_tokens_kernel(TH_GRID_CONSTANT const PrepareTokensParams params) {
  machine::launch::release_dependents();
  const u64 item = u64{machine::launch::block_index().x} * prepare_threads + machine::launch::thread_index();
  machine::launch::wait_for_earlier_grids();
  if (item < prepare_items(params)) {
    prepare_item(params, item);
  }
}

struct PrepareRowsParams {
  Nvfp4Matrix tokens;  ///< with slots one behind the other
  PreparedTokens to;
  pipeline::Groups groups;  ///< with one column tile
  /// Gathered: row r is of the token row_ids[r] / ids_divisor; ids from ids_end on, as unsigned numbers, are of none.
  machine::Global<machine::i32> row_ids;
  u32 ids_end = 0;
  u32 ids_divisor = 1;
};

inline constexpr u32 prepare_rows_threads = 256;

template <bool gathered>
TH_DEVICE u32 token_of(const PrepareRowsParams& params, u32 row) {
  if constexpr (gathered) {
    const u32 id = static_cast<u32>(params.row_ids.load(row));
    return id < params.ids_end ? id / params.ids_divisor : params.tokens.rows;
  } else {
    return row;
  }
}

/// The rows of a tile. Columns of the tile width behind them get zero scales.
template <pipeline::TileWidths tile_widths, bool gathered>
TH_DEVICE void prepare_tile(const PrepareRowsParams& params, const pipeline::GroupTile& tile) {
  const u32 first = tile.row + (params.groups.slots != 0 ? tile.group * params.groups.rows : 0);
  const u32 first_scale_row = tile.row_tile * scale_groups(tile_widths.most) * 128;
  for (u32 item = machine::launch::thread_index(); item < tile.tile_width * params.to.k_blocks;
       item += prepare_rows_threads) {
    const u32 row = item / params.to.k_blocks;
    const bool is_own = row < tile.rows;
    const u32 token = is_own ? token_of<gathered>(params, first + row) : params.tokens.rows;
    prepare_part(params.to, params.tokens, {token, first_scale_row + row, item - row * params.to.k_blocks}, first + row,
                 is_own);
  }
}

/// The grid's blocks share the row tiles; each has directory_bytes(groups.count) of shared memory.
template <pipeline::TileWidths tile_widths, bool gathered>
TH_KERNEL(prepare_rows_threads, 1)
prepare_rows_kernel(TH_GRID_CONSTANT const PrepareRowsParams params) {
  machine::launch::release_dependents();
  machine::launch::wait_for_earlier_grids();
  pipeline::each_row_tile<tile_widths>(
      params.groups, [&](const pipeline::GroupTile& tile) { prepare_tile<tile_widths, gathered>(params, tile); });
}

}  // namespace thresher::strategies::gemm::tcgen05::block_scaled
