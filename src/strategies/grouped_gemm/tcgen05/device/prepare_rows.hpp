#pragma once
/// NVFP4 tokens to rows without gaps, those of one expert one behind the other, and scales in blocks for each row tile.
#include "pipeline/grouped/row_tiles.hpp"
#include "strategies/dual_gemm/tcgen05/device/prepare_tokens.hpp"

namespace thresher::strategies::grouped_gemm::tcgen05 {

namespace weights = dual_gemm::tcgen05;
using machine::u32;

struct PrepareRowsParams {
  weights::Matrix tokens;  ///< with slots one behind the other
  weights::PreparedTokens to;
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

/// The rows of a tile. Columns of its rung behind them get zero scales.
template <pipeline::TileWidths tile_widths, bool gathered>
TH_DEVICE void prepare_tile(const PrepareRowsParams& params, const pipeline::GroupTile& tile) {
  const u32 first = tile.row + (params.groups.slots != 0 ? tile.group * params.groups.rows : 0);
  const u32 first_scale_row = tile.row_tile * weights::scale_groups(tile_widths.most) * 128;
  for (u32 item = machine::launch::thread_index(); item < tile.tile_width * params.to.k_blocks;
       item += prepare_rows_threads) {
    const u32 row = item / params.to.k_blocks;
    const bool is_own = row < tile.rows;
    const u32 token = is_own ? token_of<gathered>(params, first + row) : params.tokens.rows;
    weights::prepare_part(params.to, params.tokens, {token, first_scale_row + row, item - row * params.to.k_blocks},
                          first + row, is_own);
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

}  // namespace thresher::strategies::grouped_gemm::tcgen05
