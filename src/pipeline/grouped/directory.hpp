#pragma once
/// Which rows are whose, and which tile is of which group: made once in each block by one warp, from offsets or counts
/// that lie on the device and that no host reads.
///
/// Groups own rows one behind the other (packed) or the first rows of slots of their own. Each is cut into row tiles;
/// tiles are numbered group by group, in a group by columns, and in a column by rows, so that those that follow one
/// another read the same weights. A number becomes a tile by two ballots over the exclusive prefix of row tiles.
#include "machine/launch.hpp"
#include "machine/numbers.hpp"
#include "machine/shared.hpp"
#include "machine/warp.hpp"
#include "pipeline/grouped/groups.hpp"

namespace thresher::pipeline {

struct GroupTile {
  u32 group = 0;
  u32 column = 0;  ///< counted in tiles
  u32 row = 0;     ///< the first, of the packed rows or of the group's slot
  u32 rows = 0;    ///< that the tile has: what lies behind them is another's
};

/// `tile_rows` is a power of two.
template <u32 tile_rows>
class Directory {
 public:
  /// `memory` has directory_bytes(groups.count).
  TH_DEVICE Directory(const Groups& groups, Shared<u8> memory)
      : groups_(groups),
        first_tiles_(memory.as<u32>()),
        rows_(memory.as<u32>().offset(directory_array_words(groups.count))),
        stretch_((groups.count + 31) / 32) {}

  /// All lanes of one warp; what they write is the block's after a barrier. What was wrong: GroupFlags, in every lane.
  TH_DEVICE u32 make() const {
    if (groups_.count <= 32) {
      return make_with<1>();
    }
    if (groups_.count <= 128) {
      return make_with<4>();
    }
    return groups_.count <= 512 ? make_with<16>() : make_with<32>();
  }

  TH_DEVICE u32 tiles() const { return first_tile(groups_.count) * groups_.column_tiles; }

  /// Tile `index`, which is below tiles(). All lanes of a warp, and the result the same in all of them.
  TH_DEVICE GroupTile find(u32 index) const {
    const u32 row_tile = index / groups_.column_tiles;
    const u32 stretch = last_not_beyond(row_tile, 0, stretch_, 32) * stretch_;
    const u32 group = stretch + last_not_beyond(row_tile, stretch, 1, stretch_);
    const u32 lane = warp::lane();
    const u32 word = lane < 2 ? first_tile(group + lane) : rows_.load(padded_word(group + lane % 2));
    const u32 first = warp::shuffle(word, 0);
    const u32 row_tiles = warp::shuffle(word, 1) - first;
    const u32 place = index - first * groups_.column_tiles;
    const u32 column = place / row_tiles;
    const u32 start = groups_.slots != 0 ? 0 : warp::shuffle(word, 2);
    const u32 end = warp::shuffle(word, groups_.slots != 0 ? 2 : 3);
    const u32 row = start + (place - column * row_tiles) * tile_rows;
    const u32 rest = end - row;
    return {group, column, row, rest < tile_rows ? rest : tile_rows};
  }

 private:
  TH_DEVICE u32 first_tile(u32 group) const { return first_tiles_.load(padded_word(group)); }

  /// Of the groups first, first + step, … , at most `count` of them, the last whose first tile is not beyond
  /// `row_tile`: its place among them. The first of them is none.
  TH_DEVICE u32 last_not_beyond(u32 row_tile, u32 first, u32 step, u32 count) const {
    const u32 lane = warp::lane();
    const u32 group = first + lane * step;
    const bool is_there = lane < count && group < groups_.count;
    return bits::count_ones(warp::ballot(is_there && first_tile(is_there ? group : 0) <= row_tile)) - 1;
  }

  /// Lane l has the groups each·l … each·l + each − 1.
  template <u32 each>
  TH_DEVICE u32 make_with() const {
    u32 flags = 0;
    u32 start[each + 1];  // packed: of each group and behind the last; slots: their counts
    TH_UNROLL
    for (u32 i = 0; i <= each; ++i) {
      start[i] = 0;
    }
    if (groups_.slots != 0) {
      read_counts<each>(start, flags);
    } else {
      read_offsets<each>(start, flags);
    }
    write<each>(start);
    return warp_or(flags);
  }

  /// Limited to what there is, with what had to be limited.
  TH_DEVICE u32 limited(i32 bound, u32& flags) const {
    if (bound < 0) {
      flags |= bounds_negative;
      return 0;
    }
    if (static_cast<u32>(bound) > groups_.rows) {
      flags |= bounds_beyond;
      return groups_.rows;
    }
    return static_cast<u32>(bound);
  }

  template <u32 each>
  TH_DEVICE void read_counts(u32 (&counts)[each + 1], u32& flags) const {
    const u32 first = warp::lane() * each;
    TH_UNROLL
    for (u32 i = 0; i < each; ++i) {
      if (first + i < groups_.count) {
        counts[i] = limited(groups_.bounds.load(first + i), flags);
      }
    }
  }

  /// A group starts at the greatest of all offsets up to its own.
  template <u32 each>
  TH_DEVICE void read_offsets(u32 (&start)[each + 1], u32& flags) const {
    const u32 lane = warp::lane();
    const u32 first = lane * each;
    i32 offsets[each + 1];
    TH_UNROLL
    for (u32 i = 0; i <= each; ++i) {
      offsets[i] = first + i <= groups_.count ? groups_.bounds.load(first + i) : 0;
    }
    u32 greatest = 0;
    i32 before = offsets[0];
    TH_UNROLL
    for (u32 i = 0; i <= each; ++i) {
      if (first + i <= groups_.count) {
        flags |= offsets[i] < before ? bounds_decrease : 0U;
        before = offsets[i];
        const u32 own = limited(offsets[i], flags);
        greatest = own > greatest ? own : greatest;
      }
      start[i] = greatest;
    }
    TH_UNROLL
    for (u32 distance = 1; distance < 32; distance *= 2) {
      const u32 other = warp::shuffle_up(greatest, distance);
      greatest = lane >= distance && other > greatest ? other : greatest;
    }
    const u32 of_lanes_before = warp::shuffle_up(greatest, 1);
    TH_UNROLL
    for (u32 i = 0; i <= each; ++i) {
      start[i] = lane > 0 && of_lanes_before > start[i] ? of_lanes_before : start[i];
    }
  }

  static TH_DEVICE u32 tiles_of(u32 rows) { return (rows + tile_rows - 1) / tile_rows; }

  template <u32 each>
  TH_DEVICE void write(const u32 (&start)[each + 1]) const {
    const u32 lane = warp::lane();
    const u32 first = lane * each;
    u32 tiles[each];
    u32 sum = 0;
    TH_UNROLL
    for (u32 i = 0; i < each; ++i) {
      tiles[i] = tiles_of(groups_.slots != 0 ? start[i] : start[i + 1] - start[i]);
      sum += tiles[i];
    }
    u32 sum_with_lanes_before = sum;
    TH_UNROLL
    for (u32 distance = 1; distance < 32; distance *= 2) {
      const u32 other = warp::shuffle_up(sum_with_lanes_before, distance);
      sum_with_lanes_before += lane >= distance ? other : 0;
    }
    u32 before = sum_with_lanes_before - sum;
    TH_UNROLL
    for (u32 i = 0; i < each; ++i) {
      if (first + i < groups_.count) {
        first_tiles_.store(padded_word(first + i), before);
        rows_.store(padded_word(first + i), start[i]);
      }
      before += tiles[i];
    }
    if (lane == 31) {
      first_tiles_.store(padded_word(groups_.count), before);
      rows_.store(padded_word(groups_.count), start[each]);
    }
  }

  static TH_DEVICE u32 warp_or(u32 flags) {
    TH_UNROLL
    for (u32 distance = 16; distance > 0; distance /= 2) {
      flags |= warp::shuffle_xor(flags, distance);
    }
    return flags;
  }

  const Groups& groups_;
  Shared<u32> first_tiles_;  ///< of each group, and how many there are: in row tiles
  Shared<u32> rows_;         ///< packed: each group's first row, and that behind the last; slots: each one's rows
  u32 stretch_;              ///< groups that one lane stands for in the first ballot
};

}  // namespace thresher::pipeline
