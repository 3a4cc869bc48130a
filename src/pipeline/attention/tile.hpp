#pragma once
/// Tiles of queries, keys and values in shared memory, and where a TMA copy goes.
#include "machine/machine.hpp"
#include "pipeline/attention/config.hpp"

namespace thresher::pipeline::attention {

/// The destination of one block's copies: a slot of a ring, or a single tile. Copies complete on its barrier.
struct Slot {
  Shared<u8> tile;
  Barrier full;
  u16 block_mask = 0;  ///< 0: this block alone; else the blocks of the cluster that all receive it

  template <int rank>
  TH_DEVICE void copy(u32 offset_bytes, const TensorMap& map, At<rank> at) const {
    if (block_mask == 0) {
      tma::load(tile.offset_bytes(offset_bytes), map, full, at);
    } else {
      tma::load_multicast(tile.offset_bytes(offset_bytes), map, full, at, block_mask);
    }
  }
};

/// Blocks of keys [begin, end), counted in blocks of the configuration's size.
struct Blocks {
  i32 begin;
  i32 end;
};

/// The blocks that a cluster copies for one piece of work, as one of its warpgroups takes them.
struct WarpgroupBlocks {
  i32 before;  ///< copied, but seen by none of its rows
  Blocks own;
  i32 after;
};

template <MatrixEngine Engine>
using TileOperand = typename Engine::template Descriptor<Swizzle::b128>;

/// k-step `step` (16 columns of 16 bits, or 32 of FP8) of a tile as an operand whose contiguous dimension is k.
/// `row_bytes`: of a panel, which is the span of the swizzle.
template <MatrixEngine Engine, int row_bytes = panel_row_bytes>
TH_DEVICE auto along_columns(Shared<u8> tile, const TileLayout& layout, int step, bool from_base = false) {
  static_assert(row_bytes == 128 || row_bytes == 64);
  constexpr Swizzle swizzle = row_bytes == 128 ? Swizzle::b128 : Swizzle::b64;
  constexpr int steps_per_panel = row_bytes / step_bytes;
  const u32 panel = static_cast<u32>(step / steps_per_panel) * layout.panel_bytes;
  const u32 in_panel = static_cast<u32>(step % steps_per_panel) * step_bytes;
  if (from_base) {
    return Engine::template descriptor<swizzle>(tile, 16, layout.group_bytes).later(panel + in_panel);
  }
  return Engine::template descriptor<swizzle>(tile.offset_bytes(panel), 16, layout.group_bytes).advance(in_panel);
}

/// k-step `step` (16 rows) of a tile as an operand whose contiguous dimension is n: the values.
template <MatrixEngine Engine>
TH_DEVICE TileOperand<Engine> along_rows(Shared<u8> tile, const TileLayout& layout, int step, bool from_base = false) {
  const u32 offset = static_cast<u32>(step) * 2 * layout.group_bytes;
  if (from_base) {
    return Engine::template descriptor<Swizzle::b128>(tile, layout.panel_bytes, layout.group_bytes).later(offset);
  }
  return Engine::template descriptor<Swizzle::b128>(tile.offset_bytes(offset), layout.panel_bytes, layout.group_bytes);
}

/// A warp's A fragment of k-step `step` from rows [first_row, first_row + 16) of a tile of `rows` rows; `row_bytes` as
/// above.
template <MatrixEngine Engine, int row_bytes = panel_row_bytes>
TH_DEVICE typename Engine::Fragment load_fragment(Shared<u8> tile, int rows, u32 first_row, int step) {
  constexpr int steps_per_panel = row_bytes / step_bytes;
  const u32 lane = warp::lane();
  // ldmatrix tile t = lane/8: rows 8·(t%2) …, 16-byte chunk t/2 of the k-step; chunks are swizzled by the row.
  const u32 row = first_row + lane % 8 + (lane / 8 % 2) * 8;
  const u32 chunk = static_cast<u32>(step % steps_per_panel) * 2 + lane / 16;
  const u32 panel = static_cast<u32>(step / steps_per_panel * rows * row_bytes);
  const u32 swizzle = row_bytes == 128 ? row % 8 : row / 2 % 4;
  const matrix::Tiles<4> tiles = matrix::load<4>(tile.offset_bytes(panel + row * row_bytes + ((chunk ^ swizzle) * 16)));
  return {{tiles.word[0], tiles.word[1], tiles.word[2], tiles.word[3]}};
}

}  // namespace thresher::pipeline::attention
