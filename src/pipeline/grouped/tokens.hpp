#pragma once
/// Copies of a tile's tokens into a slot: rows of 128 bytes, as many as the tile's rung.
#include "machine/tma.hpp"
#include "pipeline/grouped/directory.hpp"
#include "pipeline/grouped/rung.hpp"
#include "pipeline/ring.hpp"

namespace thresher::pipeline {

/// Rungs below many_token_rows come in boxes of few_token_rows, the others in boxes of many.
inline constexpr u32 few_token_rows = least_rung;
inline constexpr u32 many_token_rows = 64;
inline constexpr u32 token_row_bytes = 128;

/// Maps of [slot, row, k] with boxes of so many rows × 128 bytes; packed rows are one slot.
struct TokenMaps {
  const TensorMap& few;
  const TensorMap& many;
};

/// Rows of one panel, from the tile's first on, to `offset` of the slot. Those behind the tile's are another's, or
/// zeros behind the last; `k` counts elements.
template <u32 most>
TH_DEVICE void load_tokens(const LoadSlot& to, u32 offset, const TokenMaps& maps, const GroupTile& tile, u32 slot,
                           u32 rung, i32 k) {
  const Shared<u8> first = to.base.offset_bytes(offset);
  const i32 row = static_cast<i32>(tile.row);
  if constexpr (most >= many_token_rows) {
    if (rung >= many_token_rows) {
      TH_UNROLL
      for (u32 at = 0; at < most; at += many_token_rows) {
        if (at < rung) {
          tma::load(first.offset_bytes(at * token_row_bytes), maps.many, to.full,
                    At{k, row + static_cast<i32>(at), static_cast<i32>(slot)});
        }
      }
      return;
    }
  }
  TH_UNROLL
  for (u32 at = 0; at < (most < many_token_rows ? most : many_token_rows / 2); at += few_token_rows) {
    if (at < rung) {
      tma::load(first.offset_bytes(at * token_row_bytes), maps.few, to.full,
                At{k, row + static_cast<i32>(at), static_cast<i32>(slot)});
    }
  }
}

}  // namespace thresher::pipeline
