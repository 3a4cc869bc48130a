#pragma once
/// Where the tiles of a kernel come from, and in which order a cluster takes them.
#include "machine/debug.hpp"
#include "machine/warp.hpp"
#include "pipeline/grouped/directory.hpp"
#include "pipeline/grouped/groups.hpp"
#include "pipeline/shape.hpp"

namespace thresher::pipeline {

/// The cluster that takes tiles, among all of the grid. All blocks of a cluster take the same ones.
struct ClusterPlace {
  u32 index = 0;
  u32 count = 1;
};

/// Tiles have numbers below `count`; `walk` goes through those of this cluster. A source that is_made has to be made by
/// all lanes of one warp before others of the block use it, and gives flags.
template <class Source>
concept TileSource = requires(const Source& source, u32 index) {
  requires Same<decltype(Source::is_made), const bool>;
  { source.count() } -> Same<u32>;
  { source.find(index) } -> Same<typename Source::Tile>;
  { source.has(source.walk()) } -> Same<bool>;
  { source.walk().index() } -> Same<u32>;
};

/// Tiles that the operation counts and places: one for each cluster, or tile after tile where clusters are persistent.
template <class Operation>
class StaticTiles {
 public:
  using Tile = typename Operation::Tile;
  static constexpr bool is_made = false;

  /// `member` is the block's place among neighbours that have neighbouring tiles.
  TH_DEVICE StaticTiles(const Operation& operation, ClusterPlace cluster, u32 member)
      : operation_(operation), cluster_(cluster), member_(member) {}

  TH_DEVICE u32 count() const { return operation_.tiles(); }
  TH_DEVICE Tile find(u32 index) const { return operation_.tile(index, member_); }

  class Walk {
   public:
    TH_DEVICE explicit Walk(ClusterPlace cluster) : index_(cluster.index), step_(cluster.count) {}
    TH_DEVICE u32 index() const { return index_; }
    TH_DEVICE void advance() { index_ += step_; }

   private:
    u32 index_;
    u32 step_;
  };
  TH_DEVICE Walk walk() const { return Walk(cluster_); }
  TH_DEVICE bool has(const Walk& walk) const { return walk.index() < count(); }

 private:
  const Operation& operation_;
  ClusterPlace cluster_;
  u32 member_;
};

/// The tiles of one cluster: round by round one of as many neighbours as there are clusters. Every second round begins
/// at the other end, so that no cluster always has the longer ones where lengths alternate or fall.
class StridedTiles {
 public:
  TH_DEVICE StridedTiles(ClusterPlace cluster, u32 tiles)
      : tiles_(tiles),
        index_(cluster.index),
        step_(2 * (cluster.count - cluster.index) - 1),
        both_(2 * cluster.count) {}

  TH_DEVICE bool is_there() const { return index_ < tiles_; }
  TH_DEVICE u32 index() const { return index_; }
  TH_DEVICE bool has_next() const { return next() < tiles_; }
  TH_DEVICE u32 next() const { return index_ + step_; }
  TH_DEVICE void advance() {
    index_ += step_;
    step_ = both_ - step_;
  }

 private:
  u32 tiles_;
  u32 index_;
  u32 step_;
  u32 both_;  ///< of two rounds
};

/// The tiles of a single group whose rows the launch knows, one for each cluster.
template <TileWidths tile_widths>
class OneGroupTiles {
 public:
  using Tile = GroupTile;
  static constexpr bool is_made = false;

  TH_DEVICE OneGroupTiles(const Groups& groups, ClusterPlace cluster) : groups_(groups), cluster_(cluster) {}

  TH_DEVICE u32 count() const { return row_tiles() * groups_.column_tiles; }
  /// Row tiles of one column follow each other: they read the same weights.
  TH_DEVICE Tile find(u32 index) const {
    const u32 tiles = row_tiles();
    const u32 column = index / tiles;
    const u32 row_tile = index - column * tiles;
    const u32 each = rows_of_tiles(groups_.rows, tiles, tile_widths);
    const u32 rest = groups_.rows - row_tile * each;
    const u32 rows = rest < each ? rest : each;
    return {0, column, row_tile * each, rows, tile_width_for(rows, tile_widths), row_tile};
  }

  TH_DEVICE StridedTiles walk() const { return {cluster_, count()}; }
  TH_DEVICE bool has(const StridedTiles& walk) const { return walk.is_there(); }

 private:
  TH_DEVICE u32 row_tiles() const { return row_tiles_of(groups_.rows, tile_widths.most); }

  const Groups& groups_;
  ClusterPlace cluster_;
};

/// Tiles of groups whose rows only the device knows, from a directory that each block makes. Clusters are persistent,
/// or as many as there can be tiles.
template <TileWidths tile_widths>
class GroupTiles {
 public:
  using Tile = GroupTile;
  static constexpr bool is_made = true;

  /// `memory` has directory_bytes(groups.count).
  TH_DEVICE GroupTiles(const Groups& groups, Shared<u8> memory, ClusterPlace cluster)
      : groups_(groups), memory_(memory), directory_(groups, memory), cluster_(cluster) {}

  /// By all lanes of one warp: the GroupFlags of what was wrong with the bounds.
  TH_DEVICE u32 make() const {
    debug::name_shared(memory_, directory_bytes(groups_.count), "directory");
    const u32 flags = directory_.make();
    warp::sync();
    return flags;
  }

  TH_DEVICE u32 count() const { return directory_.tiles(); }
  TH_DEVICE Tile find(u32 index) const { return directory_.find(index); }

  TH_DEVICE bool is_first() const { return cluster_.index == 0; }
  TH_DEVICE StridedTiles walk() const { return {cluster_, count()}; }
  TH_DEVICE bool has(const StridedTiles& walk) const { return walk.is_there(); }

 private:
  const Groups& groups_;
  Shared<u8> memory_;
  Directory<tile_widths> directory_;
  ClusterPlace cluster_;
};

}  // namespace thresher::pipeline
