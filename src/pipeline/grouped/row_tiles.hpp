#pragma once
/// A kernel's work on the rows of all groups before their product, row tile by row tile.
#include "machine/launch.hpp"
#include "machine/named_barrier.hpp"
#include "machine/warp.hpp"
#include "pipeline/grouped/directory.hpp"

namespace thresher::pipeline {

/// All threads of the block call it. The block has directory_bytes(groups.count) of shared memory, and the grid's
/// blocks share the tiles. `groups` has one column tile.
template <TileWidths tile_widths, class Work>
TH_DEVICE void each_row_tile(const Groups& groups, const Work& work) {
  const Directory<tile_widths> directory(groups, launch::shared_memory());
  if (warp::index() == 0) {
    directory.make();
  }
  block::sync();
  const u32 tiles = directory.tiles();
  TH_NO_UNROLL
  for (u32 index = launch::block_index().x; index < tiles; index += launch::block_count().x) {
    work(directory.find(index));
  }
}

}  // namespace thresher::pipeline
