#pragma once
/// The tiles that a block computes, and their order.
#include "machine/types.hpp"

namespace thresher::pipeline {

using namespace machine;

/// The coordinate of a tile that runs fastest over the blocks of the grid.
enum class Raster : u8 { rows_first, columns_first };

struct TileIndex {
  u32 row = 0;
  u32 column = 0;
};

/// The output as a grid of tiles. `rows` counts tiles, a multiple of the blocks that share columns in a cluster.
struct TileGrid {
  u32 rows = 0;
  u32 columns = 0;
};

/// The tile of a block that is `member` of the `cluster`-th group of `members` neighbours along the rows.
template <Raster raster, u32 members>
TH_DEVICE TileIndex tile_of(const TileGrid& grid, u32 cluster, u32 member) {
  const u32 row_groups = grid.rows / members;
  if constexpr (raster == Raster::rows_first) {
    const u32 column = cluster / row_groups;
    return {(cluster - column * row_groups) * members + member, column};
  } else {
    const u32 group = cluster / grid.columns;
    return {group * members + member, cluster - group * grid.columns};
  }
}

}  // namespace thresher::pipeline
