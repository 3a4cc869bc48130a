#pragma once
/// Tiles of query rows, the keys they see, and the directory of sequences that each block makes from the lengths on the
/// device.
#include "pipeline/attention/stream_k.hpp"
#include "strategies/attention/device/work.hpp"
#include "strategies/attention/stream_k/params.hpp"

namespace thresher::strategies::attention {

using pipeline::attention::Extent;
using pipeline::attention::StreamKConfig;
using pipeline::attention::sum_to_lane;

TH_DEVICE i32 divided_up(i32 value, i32 by) { return (value + by - 1) / by; }

/// Rows of one sequence that read the same keys: row r is query r / group of head r % group of the group's. An item has
/// the tile of its first head of keys; the tiles of its other heads differ only in the head.
struct QueryTile {
  i32 batch;
  i32 kv_head;
  i32 first_query;  ///< of the sequence, in the operand
  i32 queries;      ///< of the sequence
  i32 keys;
  i32 first_row;
  u32 rows;

  TH_DEVICE i32 query(const StreamKParams& params, u32 row) const {
    return quotient(first_row + static_cast<i32>(row), params.group);
  }
  TH_DEVICE i32 head(const StreamKParams& params, u32 row) const {
    const i32 group = static_cast<i32>(params.group.value);
    return kv_head * group + first_row + static_cast<i32>(row) - query(params, row) * group;
  }
  TH_DEVICE Visible visible(const StreamKParams& params, i32 query) const {
    return visible_from(params.call, query + keys - queries, keys);
  }
  TH_DEVICE QueryTile of_head(u32 index) const {
    QueryTile tile = *this;
    tile.kv_head += static_cast<i32>(index);
    return tile;
  }
  /// The keys that any of the rows sees; end is begin where none sees a key.
  TH_DEVICE Visible seen(const StreamKParams& params) const {
    const i32 begin = visible(params, query(params, 0)).begin;
    return {begin, most(begin, visible(params, query(params, rows - 1)).end)};
  }
  /// The keys that all of them see; end may be less than begin.
  TH_DEVICE Visible seen_by_all(const StreamKParams& params) const {
    return {visible(params, query(params, rows - 1)).begin, visible(params, query(params, 0)).end};
  }
};

/// A tile and its units: one for each chunk of keys that it sees, and at least one.
struct StreamKItem {
  QueryTile tile;
  Visible seen;
  Visible seen_by_all;
  u32 first_chunk;  ///< of the sequence's keys
  u32 chunks;
  u32 first_unit;
  u32 units;
  u32 rows;
  u32 place;  ///< among the items of a cluster
};

/// Whether the items that a warp has seen so far have as many units each.
struct CommonUnits {
  u32 each = 0;  ///< 0: it has seen none
  bool differ = false;

  /// All lanes of a warp call it. `own` are the units of an item of the lane's sequence, 0 where it has none.
  TH_DEVICE void see(u32 own) {
    const u32 there = warp::ballot(own > 0);
    if (there != 0) {
      const u32 first_lane = bits::count_ones((there & (0U - there)) - 1U);
      const u32 first = warp::shuffle(own, first_lane);
      each = each == 0 ? first : each;
      differ = differ || warp::any(own > 0 && own != each);
    }
  }
};

/// The queries and keys of each sequence, and the number of its first unit. One warp of each block makes it. For
/// clusters it has the number of a sequence's first item instead. Where clusters have several items, few sequences are
/// sorted: those with the longest items come first.
template <StreamKConfig config>
class KeyDirectory {
 public:
  TH_DEVICE KeyDirectory(const StreamKParams& params, Shared<u32> memory) : params_(params), memory_(memory) {}

  /// All lanes of one warp call it, and each gets flags for the invalid lengths that it read. A sequence's queries
  /// begin at the greatest offset so far, clamped to the number of queries. So sequences do not overlap, and all of
  /// them have no more units than a call may have.
  TH_DEVICE u32 make() const {
    constexpr i32 each = config.is_clustered() ? 1 : 4;
    const Params& call = params_.call;
    const u32 lane = warp::lane();
    const u32 lanes = static_cast<u32>(least(call.batch, 32));
    u32 flags = 0;
    u32 before = 0;
    CommonUnits common;
    i32 last_offset = 0;
    TH_NO_UNROLL
    for (i32 round = 0; round < call.batch; round += each * 32) {
      i32 end[each];
      i32 used[each];
      const i32 first_offset = query_offset(call, 0);  // in the loop, so that nothing waits for it before the others
      load_lengths(end, used, round + static_cast<i32>(lane));
      if (round == 0) {
        last_offset = limited(first_offset, flags);
      }
      TH_UNROLL
      for (i32 i = 0; i < each; ++i) {
        if (round + i * 32 >= call.batch) {
          break;
        }
        const i32 batch = round + i * 32 + static_cast<i32>(lane);
        const i32 own_end = limited(end[i], flags);
        const i32 greatest = most(running_most(own_end, lanes), last_offset);
        const i32 before_own = warp::shuffle_up(greatest, 1);
        const i32 first_query = lane == 0 ? last_offset : before_own;
        last_offset = warp::shuffle(greatest, 31);
        flags |= own_end < first_query ? offsets_clamped : 0U;
        const i32 queries = own_queries(call, greatest - first_query);
        const i32 keys = clamp(used[i], 0, call.keys);
        flags |= keys != used[i] ? lengths_clamped : 0U;
        const i32 tiles = batch < call.batch ? tiles_of(queries) : 0;
        const u32 of_tile = tiles > 0 ? units_of_tile(queries, keys, tiles) : 0;
        if constexpr (!config.single_tiles) {
          common.see(of_tile);
        }
        const u32 own = static_cast<u32>(tiles * params_.head_sets) * counted_units(of_tile);
        const u32 sum = sum_to_lane(own, lanes);
        Place place{batch, before + sum - own};
        if (config.is_sorted() && i == 0 && call.batch <= 32 && common.differ) {
          place = sorted_place(of_tile, own);
        }
        if (batch < call.batch) {
          store(place, batch, first_query, queries, keys);
        }
        before += warp::shuffle(sum, lanes - 1);
      }
    }
    if (lane == 0) {
      memory_.store(word(call.batch), before);
      memory_.store(word(call.batch) + 1, common.differ ? 0 : common.each);
    }
    return flags;
  }

  TH_DEVICE Extent extent() const {
    return {memory_.load(word(params_.call.batch)), memory_.load(word(params_.call.batch) + 1)};
  }

  /// The item of a unit, or for clusters of its number. All lanes of a warp call it, with one unit; where sequences are
  /// sorted, each with its own.
  TH_DEVICE StreamKItem find(u32 unit) const {
    StreamKItem item = first_of(place_of(unit));
    const i32 tiles = tiles_of(item.tile.queries);
    const u32 index = (unit - item.first_unit) / counted_units(item.units);
    item.first_unit += index * counted_units(item.units);
    const i32 set = tiles == 1 ? static_cast<i32>(index) : static_cast<i32>(index) / tiles;
    item.tile.kv_head = set * config.heads;
    item.tile.first_row = (static_cast<i32>(index) - set * tiles) * config.rows;
    see_keys(item);
    return item;
  }

  /// The next item of one that is not the last.
  TH_DEVICE StreamKItem next(const StreamKItem& of) const {
    const u32 first_unit = of.first_unit + of.units;
    if (memory_.load(word(of.tile.batch + 1)) > first_unit) {
      StreamKItem item = of;
      const bool is_same_head = item.tile.first_row + config.rows < item.tile.queries * params_.call.group;
      item.tile.first_row = is_same_head ? item.tile.first_row + config.rows : 0;
      item.tile.kv_head += is_same_head ? 0 : config.heads;
      item.first_unit = first_unit;
      see_keys(item);
      return item;
    }
    const bool is_next = memory_.load(word(of.tile.batch + 2)) > first_unit;
    if (!is_next) {
      return find(first_unit);
    }
    StreamKItem item = first_of(of.tile.batch + 1);
    see_keys(item);
    return item;
  }

 private:
  /// Ends of queries, and keys, of every 32nd sequence from `first` on.
  template <i32 count>
  TH_DEVICE void load_lengths(i32 (&end)[count], i32 (&used)[count], i32 first) const {
    const Params& call = params_.call;
    TH_UNROLL
    for (i32 i = 0; i < count; ++i) {
      const i32 batch = first + i * 32;
      const bool is_there = batch < call.batch;
      end[i] = is_there ? query_offset(call, batch + 1) : call.queries;
      used[i] = is_there ? used_keys(call, batch) : 0;
    }
  }

  /// The units of an item that the directory counts.
  TH_DEVICE static u32 counted_units(u32 units) { return config.is_clustered() ? 1 : units; }

  /// The place of the last sequence whose first unit is not beyond `unit`.
  TH_DEVICE i32 place_of(u32 unit) const {
    constexpr i32 seen_at_once = config.is_sorted() ? 1 : 32;
    i32 low = 0;
    i32 high = params_.call.batch - 1;
    while (low + seen_at_once <= high) {
      const i32 middle = (low + high + 1) / 2;
      if (memory_.load(word(middle)) <= unit) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    if constexpr (!config.is_sorted()) {
      const i32 own = low + static_cast<i32>(warp::lane());
      low += static_cast<i32>(bits::count_ones(warp::ballot(own <= high && memory_.load(word(own)) <= unit))) - 1;
    }
    return low;
  }

  /// A sequence's place in the directory.
  struct Place {
    i32 index;
    u32 first_unit;
  };

  /// Behind the lanes whose sequences have longer items, and those before it whose items are as long.
  TH_DEVICE static Place sorted_place(u32 item_units, u32 items) {
    Place place{0, 0};
    TH_UNROLL
    for (u32 other = 0; other < 32; ++other) {
      const u32 other_units = warp::shuffle(item_units, other);
      const u32 other_items = warp::shuffle(items, other);
      const bool is_ahead = other_units > item_units || (other_units == item_units && other < warp::lane());
      place.index += is_ahead ? 1 : 0;
      place.first_unit += is_ahead ? other_items : 0;
    }
    return place;
  }

  TH_DEVICE void store(const Place& place, i32 batch, i32 first_query, i32 queries, i32 keys) const {
    const u32 at = word(place.index);
    memory_.store(at, place.first_unit);
    memory_.store(at + 1, static_cast<u32>(first_query));
    memory_.store(at + 2, static_cast<u32>(queries));
    memory_.store(at + 3, static_cast<u32>(keys));
    if constexpr (config.is_sorted()) {
      memory_.store(at + 4, static_cast<u32>(batch));
    }
  }

  /// The first item of a sequence, without the keys that it sees.
  TH_DEVICE StreamKItem first_of(i32 index) const {
    StreamKItem item{};
    item.first_unit = memory_.load(word(index));
    item.tile.batch = config.is_sorted() ? static_cast<i32>(memory_.load(word(index) + 4)) : index;
    item.tile.first_query = static_cast<i32>(memory_.load(word(index) + 1));
    item.tile.queries = static_cast<i32>(memory_.load(word(index) + 2));
    item.tile.keys = static_cast<i32>(memory_.load(word(index) + 3));
    if constexpr (!config.is_clustered()) {
      item.units = units_of_tile(item.tile.queries, item.tile.keys, tiles_of(item.tile.queries));
    }
    return item;
  }
  TH_DEVICE void see_keys(StreamKItem& item) const {
    item.rows = static_cast<u32>(least(config.rows, item.tile.queries * params_.call.group - item.tile.first_row));
    item.tile.rows = item.rows;
    item.seen = item.tile.seen(params_);
    item.seen_by_all = item.tile.seen_by_all(params_);
    item.first_chunk = static_cast<u32>(item.seen.begin / config.keys());
    item.chunks = chunks_of(item.seen);
    if constexpr (config.is_clustered()) {
      item.units = item.chunks == 0 ? 1 : item.chunks;
    }
  }

  TH_DEVICE i32 tiles_of(i32 queries) const { return divided_up(queries * params_.call.group, config.rows); }

  /// The offset, clamped to the operand.
  TH_DEVICE i32 limited(i32 offset, u32& flags) const {
    const i32 inside = clamp(offset, 0, params_.call.queries);
    flags |= inside != offset ? offsets_clamped : 0U;
    return inside;
  }

  TH_DEVICE static u32 word(i32 index) { return static_cast<u32>(index) * config.sequence_words(); }

  TH_DEVICE static u32 chunks_of(const Visible& keys) {
    return keys.begin < keys.end ? static_cast<u32>(divided_up(keys.end, config.keys()) - keys.begin / config.keys())
                                 : 0;
  }

  /// The units of each tile of a sequence: the chunks that a single tile sees, else at least as many as any of them
  /// sees.
  TH_DEVICE u32 units_of_tile(i32 queries, i32 keys, i32 tiles) const {
    const Params& call = params_.call;
    if (tiles == 1) {
      const QueryTile all{0, 0, 0, queries, keys, 0, static_cast<u32>(queries * call.group)};
      const u32 chunks = chunks_of(all.seen(params_));
      return chunks == 0 ? 1 : chunks;
    }
    const i32 span = call.window_left + call.window_right + config.rows + 1;
    const i32 chunks = least(divided_up(keys, config.keys()), span / config.keys() + 2);
    return static_cast<u32>(most(chunks, 1));
  }

  const StreamKParams& params_;
  Shared<u32> memory_;
};

}  // namespace thresher::strategies::attention
