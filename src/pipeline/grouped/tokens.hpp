#pragma once
/// Copies of a tile's tokens into a slot: rows of a panel, as many as the tile's rung.
#include "machine/tma.hpp"
#include "pipeline/grouped/directory.hpp"
#include "pipeline/grouped/rung.hpp"
#include "pipeline/ring.hpp"

namespace thresher::pipeline {

/// TileWidths below many_token_rows come in boxes of few_token_rows, the others in boxes of many, the last of which may
/// bring rows beyond the rung: narrow steps would want another box for each.
inline constexpr u32 few_token_rows = 8;
TH_DEVICE constexpr u32 many_token_rows(TileWidths tile_widths) { return tile_widths.step % 64 == 0 ? 64 : 32; }
inline constexpr u32 token_row_bytes = 128;

/// Rows that the copies for a rung bring, at most rungs.most.
TH_DEVICE constexpr u32 loaded_rows(u32 tile_width, TileWidths tile_widths) {
  const u32 many = many_token_rows(tile_widths);
  return tile_width < many ? tile_width : (tile_width + many - 1) / many * many;
}

/// Maps of [slot, row, k] with boxes of so many rows of a panel; packed rows are one slot.
struct TokenMaps {
  const TensorMap& few;
  const TensorMap& many;
};

/// Rows of one panel, of so many bytes each, from the tile's first on, to `offset` of the slot. Those behind the tile's
/// are another's, or zeros behind the last; `k` counts elements.
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
