#pragma once
// Blocks look up tile after tile of groups in a directory and write their group's number into every row that the tile
// has, in a column for each tile along the columns: out[row][column] = group + 1. Warp 0 makes the directory, warp 1
// walks.
#include "machine/machine.hpp"
#include "pipeline/grouped/directory.hpp"

namespace planted {

using namespace thresher::machine;

enum class DirectoryDefect {
  none,
  one_off,               // the prefix has a tile too many from the second group on
  stale,                 // bounds are read before the grid that writes them has ended
  unpublished,           // the walkers do not wait for the directory
  another_launch,        // the prefix of the launch before, kept in memory, is taken for this one's
  two_blocks_on_a_tile,  // neighbours walk the same tiles
  partial_stored_whole,  // the rows of a whole tile are written, whatever the group has
};

struct DirectoryParams {
  thresher::pipeline::Groups groups;
  Global<u32> out;   // [rows][column_tiles]
  Global<u32> kept;  // of another_launch: how many tiles the launch before had
  Global<u32> flags;
  DirectoryDefect defect = DirectoryDefect::none;
};

inline constexpr u32 directory_tile_rows = 8;
inline constexpr thresher::pipeline::TileWidths directory_rungs{directory_tile_rows, directory_tile_rows};

TH_KERNEL(64, 1) walk_directory(TH_GRID_CONSTANT const DirectoryParams params) {
  const auto is = [&](DirectoryDefect wanted) { return params.defect == wanted; };
  const Shared<u8> memory = launch::shared_memory();
  const thresher::pipeline::Directory<directory_rungs> directory(params.groups, memory);
  const bool makes = warp::index() == 0;
  if (makes) {
    debug::name_shared(memory, thresher::pipeline::directory_bytes(params.groups.count), "directory");
    if (!is(DirectoryDefect::stale)) {
      launch::wait_for_earlier_grids();
    }
    const u32 flags = directory.make();
    warp::sync();
    if (is(DirectoryDefect::one_off) && warp::lane() == 0) {
      memory.as<u32>().store(1, memory.as<u32>().load(1) + 1);
    }
    if (launch::block_index().x == 0 && warp::lane() == 0) {
      params.flags.store(0, flags);
    }
  }
  if (!is(DirectoryDefect::unpublished)) {
    block::sync();
  }
  if (makes) {
    return;
  }
  launch::wait_for_earlier_grids();
  const u32 tiles = is(DirectoryDefect::another_launch) ? params.kept.load() : directory.tiles();
  const u32 first = is(DirectoryDefect::two_blocks_on_a_tile) ? launch::block_index().x / 2 : launch::block_index().x;
  for (u32 index = first; index < tiles; index += launch::block_count().x) {
    const thresher::pipeline::GroupTile tile = directory.find(index);
    const u32 rows = is(DirectoryDefect::partial_stored_whole) ? directory_tile_rows : tile.rows;
    const u32 slot_row = params.groups.slots != 0 ? tile.group * params.groups.rows : 0;
    if (warp::lane() < rows) {
      const u32 row = slot_row + tile.row + warp::lane();
      params.out.store(row * params.groups.column_tiles + tile.column, tile.group + 1);
    }
  }
}

}  // namespace planted
