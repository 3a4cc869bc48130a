#pragma once
/// Tiles with fewer rows than the largest: a kernel is compiled for several tile widths, and each tile takes the
/// smallest that holds its rows.
#include "machine/types.hpp"

namespace thresher::pipeline {

using namespace machine;

/// The columns of the MMA instruction, as a type.
template <u32 count>
struct TileWidth {
  static constexpr u32 columns = count;
};

/// The tile widths from `least` to `most`. Each is twice the one below; beyond doubled_widths each is `step` wider.
struct TileWidths {
  u32 least = 8;
  u32 most = 8;
  u32 step = 0;  ///< divides doubled_widths; 0: all are twice the one below
};
inline constexpr u32 doubled_widths = 64;

/// The next width below `tile_width`, which is not the least.
TH_DEVICE constexpr u32 tile_width_below(u32 tile_width, TileWidths tile_widths) {
  return tile_widths.step != 0 && tile_width > doubled_widths ? tile_width - tile_widths.step : tile_width / 2;
}

/// The smallest that holds `rows`, which are 1 to `tile_widths.most`.
TH_DEVICE constexpr u32 tile_width_for(u32 rows, TileWidths tile_widths) {
  u32 tile_width = tile_widths.step != 0 && tile_widths.most > doubled_widths ? doubled_widths : tile_widths.most;
  if (tile_widths.step != 0 && rows > doubled_widths) {
    tile_width = (rows + tile_widths.step - 1) / tile_widths.step * tile_widths.step;
  } else {
    while (tile_width > tile_widths.least && rows <= tile_width / 2) {
      tile_width /= 2;
    }
  }
  return tile_width < tile_widths.least ? tile_widths.least : tile_width;
}

/// The minimum number of tiles of up to `most` rows that hold `rows`.
TH_DEVICE constexpr u32 row_tiles_of(u32 rows, u32 most) { return (rows + most - 1) / most; }

/// The rows per tile when `rows` are divided into `tiles` tiles of one width. The last tile has the remainder.
TH_DEVICE constexpr u32 rows_of_tiles(u32 rows, u32 tiles, TileWidths tile_widths) {
  return tile_width_for((rows + tiles - 1) / tiles, tile_widths);
}

/// Calls `use` with `tile_width`, which is one of them, as a type.
template <TileWidths tile_widths, class Use>
TH_DEVICE void with_tile_width(u32 tile_width, const Use& use) {
  if constexpr (tile_widths.most > tile_widths.least) {
    if (tile_width < tile_widths.most) {
      with_tile_width<TileWidths{tile_widths.least, tile_width_below(tile_widths.most, tile_widths), tile_widths.step}>(
          tile_width, use);
      return;
    }
  }
  use(TileWidth<tile_widths.most>{});
}

}  // namespace thresher::pipeline
