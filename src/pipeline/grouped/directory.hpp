#pragma once
/// Maps rows to groups and tiles to groups. One warp of each block makes the directory once, from offsets or counts in
/// device memory that no host reads.
///
/// Groups own contiguous rows (packed) or the first rows of separate slots. Each group is divided into the minimum
/// number of row tiles, as even as their tile widths allow. Tiles are numbered by group, within a group by columns, and
/// within a column by rows, so that consecutive tiles read the same weights. Two ballots over the exclusive prefix of
/// row tiles map a number to a tile. Up to 32 groups are sorted by the length of their tiles, the longest first: blocks
/// with strided tiles then end together. More groups are not sorted.
#include "machine/launch.hpp"
#include "machine/numbers.hpp"
#include "machine/shared.hpp"
#include "machine/warp.hpp"
#include "pipeline/grouped/groups.hpp"
#include "pipeline/grouped/tile_widths.hpp"

namespace thresher::pipeline {

struct GroupTile {
  u32 group = 0;
  u32 column = 0;      ///< in tiles
  u32 row = 0;         ///< the first, of the packed rows or of the group's slot
  u32 rows = 0;        ///< of the tile: later rows belong to other tiles
  u32 tile_width = 0;  ///< the smallest that holds them
  u32 row_tile = 0;    ///< its index among the row tiles of all groups
};

/// A tile has at most `tile_widths.most` rows.
template <TileWidths tile_widths>
class Directory {
 public:
  /// `memory` has directory_bytes(groups.count).
  TH_DEVICE Directory(const Groups& groups, Shared<u8> memory)
      : groups_(groups),
        first_tiles_(memory.as<u32>()),
        rows_(memory.as<u32>().offset(
            directory_array_words(groups.count <= max_sorted_groups ? max_sorted_groups : groups.count))),
        stretch_((groups.count + 31) / 32) {}

  /// All lanes of one warp call it; the block may read the directory after a barrier. Returns the GroupFlags, in every
  /// lane.
  TH_DEVICE u32 make() const {
    if (is_sorted()) {
      return make_with<1>();
    }
    if (groups_.count <= 128) {
      return make_with<4>();
    }
    return make_with<16>();
  }

  TH_DEVICE u32 tiles() const { return first_tile(groups_.count) * groups_.column_tiles; }

  /// Tile `index`, which is below tiles(). All lanes of a warp call it, and all get the same result.
  TH_DEVICE GroupTile find(u32 index) const {
    const u32 row_tile = index / groups_.column_tiles;
    const Entry entry = is_sorted() ? sorted_entry(row_tile) : entry_of(row_tile);
    const u32 place = index - entry.first_tile * groups_.column_tiles;
    const u32 column = place / entry.tiles;
    const u32 in_group = place - column * entry.tiles;
    const u32 tile_rows = rows_of_tiles(entry.end - entry.start, entry.tiles, tile_widths);
    const u32 row = entry.start + in_group * tile_rows;
    const u32 rest = entry.end - row;
    const u32 rows = rest < tile_rows ? rest : tile_rows;
    return {entry.group, column, row, rows, tile_width_for(rows, tile_widths), entry.first_tile + in_group};
  }

 private:
  /// One group's entry in the directory.
  struct Entry {
    u32 group = 0;
    u32 first_tile = 0;  ///< in row tiles, as `tiles`
    u32 tiles = 0;
    u32 start = 0;  ///< its first row
    u32 end = 0;    ///< and the end of its rows
  };

  TH_DEVICE bool is_sorted() const { return groups_.count <= max_sorted_groups; }

  TH_DEVICE Entry entry_of(u32 row_tile) const {
    const u32 stretch = last_not_beyond(row_tile, 0, stretch_, 32) * stretch_;
    const u32 group = stretch + last_not_beyond(row_tile, stretch, 1, stretch_);
    const u32 lane = warp::lane();
    const u32 word = lane < 2 ? first_tile(group + lane) : rows_.load(padded_word(group + lane % 2));
    const u32 first = warp::shuffle(word, 0);
    return {group, first, warp::shuffle(word, 1) - first, groups_.slots != 0 ? 0 : warp::shuffle(word, 2),
            warp::shuffle(word, groups_.slots != 0 ? 2 : 3)};
  }

  TH_DEVICE Entry sorted_entry(u32 row_tile) const {
    const u32 place = last_not_beyond(row_tile, 0, 1, 32);
    const u32 lane = warp::lane();
    const u32 word = lane < 2   ? first_tile(place + lane)
                     : lane < 5 ? rows_.load((lane - 2) * max_sorted_groups + place)
                                : 0;
    const u32 first = warp::shuffle(word, 0);
    return {warp::shuffle(word, 4), first, warp::shuffle(word, 1) - first, warp::shuffle(word, 2),
            warp::shuffle(word, 3)};
  }

  TH_DEVICE u32 first_tile(u32 group) const { return first_tiles_.load(padded_word(group)); }

  /// Among the groups first, first + step, …, at most `count` of them, the last one whose first tile is not beyond
  /// `row_tile`. Returns its index among them; the first always qualifies, so that 0 is the minimum.
  TH_DEVICE u32 last_not_beyond(u32 row_tile, u32 first, u32 step, u32 count) const {
    const u32 lane = warp::lane();
    const u32 group = first + lane * step;
    const bool is_there = lane < count && group < groups_.count;
    return bits::count_ones(warp::ballot(is_there && first_tile(is_there ? group : 0) <= row_tile)) - 1;
  }

  /// The state that earlier rounds pass on.
  struct Carried {
    u32 end = 0;    ///< the end of the last group's rows
    u32 tiles = 0;  ///< of all of them
  };

  /// Lane l has the groups each·l … each·l + each − 1 of a round: more of them would take more registers than a small
  /// kernel has.
  template <u32 each>
  TH_DEVICE u32 make_with() const {
    u32 flags = 0;
    Carried carried;
    TH_NO_UNROLL
    for (u32 round = 0; round < groups_.count; round += 32 * each) {
      const u32 first = round + warp::lane() * each;
      u32 start[each + 1];  // packed: of each group, then the end; slots: their counts
      if (groups_.slots != 0) {
        read_counts<each>(first, start, flags);
      } else {
        read_offsets<each>(first, start, carried, flags);
      }
      if constexpr (each == 1) {
        write_sorted(start);
      } else {
        write<each>(round, start, carried);
      }
    }
    return warp::reduce(flags, [](u32 a, u32 b) { return a | b; });
  }

  /// Clamps a bound, and sets the flags.
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
  TH_DEVICE void read_counts(u32 first, u32 (&counts)[each + 1], u32& flags) const {
    TH_UNROLL
    for (u32 i = 0; i <= each; ++i) {
      counts[i] = i < each && first + i < groups_.count ? limited(groups_.bounds.load(first + i), flags) : 0;
    }
  }

  TH_DEVICE i32 offset(u32 index) const {
    return groups_.bounds.is_null() ? static_cast<i32>(index * groups_.rows) : groups_.bounds.load(index);
  }

  /// A group starts at the maximum of all offsets up to its own.
  template <u32 each>
  TH_DEVICE void read_offsets(u32 first, u32 (&start)[each + 1], Carried& carried, u32& flags) const {
    const u32 lane = warp::lane();
    TH_UNROLL
    for (u32 i = 0; i <= each; ++i) {
      start[i] = first + i <= groups_.count ? static_cast<u32>(offset(first + i)) : 0;
    }
    u32 greatest = 0;
    i32 before = static_cast<i32>(start[0]);
    TH_UNROLL
    for (u32 i = 0; i <= each; ++i) {
      const i32 offset = static_cast<i32>(start[i]);
      if (first + i <= groups_.count) {
        flags |= offset < before ? bounds_decrease : 0U;
        before = offset;
        const u32 own = limited(offset, flags);
        greatest = own > greatest ? own : greatest;
      }
      start[i] = greatest;
    }
    TH_UNROLL
    for (u32 distance = 1; distance < 32; distance *= 2) {
      const u32 other = warp::shuffle_up(greatest, distance);
      greatest = lane >= distance && other > greatest ? other : greatest;
    }
    u32 of_those_before = warp::shuffle_up(greatest, 1);
    of_those_before = lane > 0 && of_those_before > carried.end ? of_those_before : carried.end;
    TH_UNROLL
    for (u32 i = 0; i <= each; ++i) {
      start[i] = of_those_before > start[i] ? of_those_before : start[i];
    }
    carried.end = warp::shuffle(start[each], 31);
  }

  static TH_DEVICE u32 tiles_of(u32 rows) { return row_tiles_of(rows, tile_widths.most); }

  template <u32 each>
  TH_DEVICE void write(u32 round, const u32 (&start)[each + 1], Carried& carried) const {
    const u32 lane = warp::lane();
    const u32 first = round + lane * each;
    // Computed twice, since storing the counts would take as many registers again.
    const auto tiles = [&](u32 i) { return tiles_of(groups_.slots != 0 ? start[i] : start[i + 1] - start[i]); };
    u32 sum = 0;
    TH_UNROLL
    for (u32 i = 0; i < each; ++i) {
      sum += tiles(i);
    }
    u32 sum_with_lanes_before = sum;
    TH_UNROLL
    for (u32 distance = 1; distance < 32; distance *= 2) {
      const u32 other = warp::shuffle_up(sum_with_lanes_before, distance);
      sum_with_lanes_before += lane >= distance ? other : 0;
    }
    u32 before = carried.tiles + sum_with_lanes_before - sum;
    TH_UNROLL
    for (u32 i = 0; i < each; ++i) {
      if (first + i < groups_.count) {
        first_tiles_.store(padded_word(first + i), before);
        rows_.store(padded_word(first + i), start[i]);
      }
      before += tiles(i);
    }
    if (lane == 31 && round + 32 * each >= groups_.count) {
      first_tiles_.store(padded_word(groups_.count), before);
      rows_.store(padded_word(groups_.count), start[each]);
    }
    carried.tiles = warp::shuffle(before, 31);
  }

  /// Lane l has group l, and then writes the group that is sorted to position l.
  TH_DEVICE void write_sorted(const u32 (&start)[2]) const {
    const u32 lane = warp::lane();
    const u32 first = groups_.slots != 0 ? 0 : start[0];
    const u32 rows = groups_.slots != 0 ? start[0] : start[1] - start[0];
    const u32 length = rows == 0 ? 0 : rows_of_tiles(rows, tiles_of(rows), tile_widths);
    u32 place = 0;
    TH_NO_UNROLL
    for (u32 other = 0; other < groups_.count; ++other) {
      const u32 its_length = warp::shuffle(length, other);
      place += its_length > length || (its_length == length && other < lane) ? 1 : 0;
    }
    if (lane < groups_.count) {
      rows_.store(place, first);
      rows_.store(max_sorted_groups + place, first + rows);
      rows_.store(2 * max_sorted_groups + place, lane);
    }
    warp::sync();
    const u32 own = lane < groups_.count ? tiles_of(rows_.load(max_sorted_groups + lane) - rows_.load(lane)) : 0;
    u32 sum = own;
    TH_UNROLL
    for (u32 distance = 1; distance < 32; distance *= 2) {
      const u32 other = warp::shuffle_up(sum, distance);
      sum += lane >= distance ? other : 0;
    }
    if (lane < groups_.count) {
      first_tiles_.store(padded_word(lane), sum - own);
    }
    if (lane == 31) {
      first_tiles_.store(padded_word(groups_.count), sum);
    }
  }

  const Groups& groups_;
  Shared<u32> first_tiles_;  ///< of each group, and their total: in row tiles
  /// Packed: each group's first row, and the end of the last; slots: each one's rows. For sorted groups, by position:
  /// their first rows, the ends of their rows, and the group numbers.
  Shared<u32> rows_;
  u32 stretch_;  ///< groups that one lane represents in the first ballot
};

}  // namespace thresher::pipeline
