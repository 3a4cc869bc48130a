#pragma once
/// Copies a tile's tokens into a pipeline stage: rows of a panel, as many as the tile width.
#include "machine/tma.hpp"
#include "pipeline/grouped/directory.hpp"
#include "pipeline/grouped/tile_widths.hpp"
#include "pipeline/ring.hpp"

namespace thresher::pipeline {

/// Tile widths below many_token_rows use boxes of few_token_rows, the others boxes of many_token_rows. The last box may
/// load rows beyond the tile width: narrow steps would need another box size each.
inline constexpr u32 few_token_rows = 8;
TH_DEVICE constexpr u32 many_token_rows(TileWidths tile_widths) { return tile_widths.step % 64 == 0 ? 64 : 32; }
inline constexpr u32 token_row_bytes = 128;

/// Rows that the copies for a tile width load, at most tile_widths.most.
TH_DEVICE constexpr u32 loaded_rows(u32 tile_width, TileWidths tile_widths) {
  const u32 many = many_token_rows(tile_widths);
  return tile_width < many ? tile_width : (tile_width + many - 1) / many * many;
}

/// Maps of [slot, row, k] with boxes of that many rows of a panel; packed rows are one slot.
struct TokenMaps {
  const TensorMap& few;
  const TensorMap& many;
};

/// Loads rows of one panel, `row_bytes` bytes each, from the tile's first on, to `offset` of the stage. Rows behind the
/// tile's belong to other tiles, or are zeros behind the last. `k` counts elements.
template <TileWidths tile_widths, u32 row_bytes = token_row_bytes>
TH_DEVICE void load_tokens(const LoadSlot& to, u32 offset, const TokenMaps& maps, const GroupTile& tile, u32 slot,
                           i32 k) {
  constexpr u32 many = many_token_rows(tile_widths);
  const Shared<u8> first = to.base.offset_bytes(offset);
  const i32 row = static_cast<i32>(tile.row);
  if constexpr (tile_widths.most >= many) {
    if (tile.tile_width >= many) {
      TH_UNROLL
      for (u32 at = 0; at < tile_widths.most; at += many) {
        if (at < tile.tile_width) {
          tma::load(first.offset_bytes(at * row_bytes), maps.many, to.full,
                    At{k, row + static_cast<i32>(at), static_cast<i32>(slot)});
        }
      }
      return;
    }
  }
  if constexpr (tile_widths.least < many) {
    constexpr u32 max_few = tile_widths.most < many ? tile_widths.most : many / 2;
    TH_UNROLL
    for (u32 at = 0; at < max_few; at += few_token_rows) {
      if (at < tile.tile_width) {
        tma::load(first.offset_bytes(at * row_bytes), maps.few, to.full,
                  At{k, row + static_cast<i32>(at), static_cast<i32>(slot)});
      }
    }
  }
}

}  // namespace thresher::pipeline
