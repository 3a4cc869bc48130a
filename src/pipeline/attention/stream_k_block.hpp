#pragma once
/// One block of attention over a paged KV cache, however chunks of keys are shared among blocks. It has its memory, its
/// ring, and its warps, which fill the ring, multiply, and merge their results.
///
/// Loading warps fill a ring of chunks, each a share of every chunk. Each of the others multiplies 16 keys of a head of
/// every chunk. It has a running maximum and sum of its own. They synchronize only when an item ends.
///
/// Barriers of a block: keys_full[s] and values_full[s] count one arrival of each loading warp + the bytes of a chunk.
/// Without TMA they count one arrival of each loading thread. empty[s] counts one arrival of each multiplying warp.
/// Named barrier 1: the multiplying warps.
#include "machine/machine.hpp"
#include "pipeline/attention/config.hpp"

namespace thresher::pipeline::attention {

template <StreamKConfig config>
struct StreamKMemory {
  Shared<u8> memory;

  TH_DEVICE Shared<u8> keys(u32 slot) const { return memory.offset_bytes(slot * config.slot_bytes()); }
  TH_DEVICE Shared<u8> values(u32 slot) const { return keys(slot).offset_bytes(config.key_tile_bytes()); }
  /// Rows of merged_row_floats() that one warp brings to a merge.
  TH_DEVICE Shared<float> merged(u32 warp, u32 row) const {
    return memory.offset_bytes(config.merge_offset())
        .template as<float>()
        .offset((warp * StreamKConfig::merged_rows + row) * config.merged_row_floats());
  }
  /// Maximum and sum of one row of the tile from one warp.
  TH_DEVICE Shared<Vector<float, 2>> sums(u32 warp, u32 row) const {
    return memory.offset_bytes(config.sums_offset()).template as<Vector<float, 2>>().offset(warp * config.rows + row);
  }
  /// A part of a row, which a block of the cluster sends here.
  TH_DEVICE Shared<float> part(u32 index) const {
    return memory.offset_bytes(config.parts_offset())
        .template as<float>()
        .offset(index * static_cast<u32>(config.value_dim));
  }
  TH_DEVICE Shared<Vector<float, 2>> part_sums(u32 index) const {
    return memory.offset_bytes(config.parts_offset() + config.parts() * static_cast<u32>(config.value_dim) * 4)
        .template as<Vector<float, 2>>()
        .offset(index);
  }
  TH_DEVICE Barrier barrier(u32 index) const {
    return Barrier{memory.offset_bytes(config.barrier_offset()).address}.offset(index);
  }
  TH_DEVICE Barrier keys_full(u32 slot) const { return barrier(slot); }
  TH_DEVICE Barrier values_full(u32 slot) const { return barrier(config.stages + slot); }
  TH_DEVICE Barrier empty(u32 slot) const { return barrier(2 * config.stages + slot); }
  TH_DEVICE Barrier parts_full() const { return barrier(3 * config.stages); }
  TH_DEVICE Shared<u32> directory() const { return memory.offset_bytes(config.directory_offset()).template as<u32>(); }

  TH_DEVICE void init() const {
    constexpr u32 filling = static_cast<u32>(config.loader_warps()) * (config.boxes ? 1 : 32);
    TH_UNROLL
    for (u32 slot = 0; slot < static_cast<u32>(config.stages); ++slot) {
      keys_full(slot).init(filling);
      values_full(slot).init(filling);
      empty(slot).init(static_cast<u32>(config.warps));
      debug::name_barrier(keys_full(slot), "keys_full", slot);
      debug::name_barrier(values_full(slot), "values_full", slot);
      debug::name_barrier(empty(slot), "empty", slot);
    }
    if constexpr (config.is_clustered()) {
      parts_full().init(1);
      debug::name_barrier(parts_full(), "parts_full");
    }
    fence::barrier_init();
  }
};

/// A slot of the ring, and the phase of its barriers.
template <int stages>
struct StreamKCursor {
  u32 slot = 0;
  Phase phase{};

  TH_DEVICE void advance() {
    slot = slot + 1 == static_cast<u32>(stages) ? 0 : slot + 1;
    if (slot == 0) {
      phase.flip();
    }
  }
};

/// The slot of one chunk of keys. Copies complete on its barriers.
struct StreamKSlot {
  Shared<u8> keys;
  Shared<u8> values;
  Barrier keys_full;
  Barrier values_full;
  Phase phase;

  /// By one thread of each loading warp, before its copies of so many bytes.
  TH_DEVICE void expect(u32 key_bytes, u32 value_bytes) const {
    keys_full.arrive_expect_bytes(key_bytes);
    values_full.arrive_expect_bytes(value_bytes);
  }
  template <int rank>
  TH_DEVICE void copy_keys(u32 offset_bytes, const TensorMap& map, At<rank> at) const {
    tma::load(keys.offset_bytes(offset_bytes), map, keys_full, at);
  }
  template <int rank>
  TH_DEVICE void copy_values(u32 offset_bytes, const TensorMap& map, At<rank> at) const {
    tma::load(values.offset_bytes(offset_bytes), map, values_full, at);
  }
  /// With copies by threads: this thread has asked for all of its own.
  TH_DEVICE void keys_asked_for() const { async_copy::arrive_when_done(keys_full); }
  TH_DEVICE void values_asked_for() const { async_copy::arrive_when_done(values_full); }

  TH_DEVICE void wait_for_keys() const { keys_full.wait(phase); }
  TH_DEVICE void wait_for_values() const { values_full.wait(phase); }
};

/// An even split of things among sharers: the first `more` have one more than `each`.
struct EvenSplit {
  u32 each = 0;
  u32 more = 0;

  TH_DEVICE static EvenSplit among(u32 count, u32 sharers) {
    const u32 each = count / sharers;
    return {each, count - each * sharers};
  }
  TH_DEVICE u32 max() const { return each + (more > 0 ? 1 : 0); }
  /// As many as the sharers before `sharer` have.
  TH_DEVICE u32 first(u32 sharer) const { return sharer * each + (sharer < more ? sharer : more); }
  /// The sharer that has `thing`.
  TH_DEVICE u32 owner(u32 thing) const {
    const u32 of_longer = more * (each + 1);
    return thing < of_longer ? thing / (each + 1) : more + (thing - of_longer) / each;
  }
};

/// The sum over this lane and all lanes before it, in the first `lanes`.
TH_DEVICE u32 sum_to_lane(u32 sum, u32 lanes) {
  TH_UNROLL
  for (u32 distance = 1; distance < 32; distance *= 2) {
    if (distance >= lanes) {
      break;
    }
    const u32 other = warp::shuffle_up(sum, distance);
    sum += warp::lane() >= distance ? other : 0;
  }
  return sum;
}

/// Chunks [first, end) of an item.
struct Chunks {
  u32 first;
  u32 end;
};

/// Units [first, last): of the call, or with clusters of the cluster's items.
struct Units {
  u32 first;
  u32 last;
};

/// A block's share of an item: all of it, or a part, which has a place of its own.
struct ItemShare {
  u32 first;  ///< of the item's units
  u32 end;
  bool is_whole;
  bool begins;
  u32 place;  ///< of the part
};

template <StreamKConfig config, class Operation>
class StreamKBlock {
 public:
  using Item = typename Operation::Item;
  using State = typename Operation::State;
  using Cursor = StreamKCursor<config.stages>;

  TH_DEVICE StreamKBlock(const Operation& operation, const StreamKMemory<config>& memory)
      : operation_(operation), memory_(memory) {}

  /// By each loading warp: the units `own`. `sharing` gives the first item and the next ones. Gives flags of each lane:
  /// what was wrong with the pages.
  template <class Sharing>
  TH_DEVICE u32 load(const Sharing& sharing, const Units& own) const {
    u32 flags = 0;
    Cursor cursor{0, Phase{1}};
    if (own.first < own.last) {
      Item item = sharing.first();
      TH_NO_UNROLL
      for (u32 unit = own.first;;) {
        const ItemShare share = share_of_item(item, unit, own);
        flags |= load_chunks(item, chunks_of(item, share), cursor);
        unit = item.first_unit + share.end;
        if (config.single_tiles || unit == own.last) {
          break;
        }
        item = sharing.next(item);
      }
    }
    return flags;
  }

  /// By each multiplying warp: the units `own`, of which there are some. `sharing` begins each item, is ready before
  /// the first is merged, and takes the rows of each. Gives the last item.
  template <class Sharing>
  TH_DEVICE Item multiply(const Sharing& sharing, const Units& own, u32 warp) const {
    Cursor cursor;
    State state;
    Item item = sharing.first();
    operation_.load_queries(item, state);
    TH_NO_UNROLL
    for (u32 unit = own.first;;) {
      const ItemShare share = share_of_item(item, unit, own);
      sharing.begin(item, share, warp);
      process_chunks(item, chunks_of(item, share), state, cursor);
      const bool is_first = unit == own.first;
      if (is_first) {
        sharing.get_ready();
      }
      unit = item.first_unit + share.end;
      const bool is_last = config.single_tiles || unit == own.last;
      Item next = item;
      if (!is_last) {
        next = sharing.next(item);
        operation_.load_queries(next, state);
      }
      merge(item, state, warp, is_first, [&](u32 head, u32 row) { sharing.take_row(item, share, head, row); });
      if (is_last) {
        return item;
      }
      item = next;
    }
  }

 private:
  TH_DEVICE static ItemShare share_of_item(const Item& item, u32 unit, const Units& own) {
    const u32 first = unit - item.first_unit;
    const u32 rest = own.last - item.first_unit;
    const u32 end = rest < item.units ? rest : item.units;
    const bool begins = first == 0;
    return {first, end, begins && end == item.units, begins, 2 * launch::block_index().x + (begins ? 1 : 0)};
  }

  TH_DEVICE static Chunks chunks_of(const Item& item, const ItemShare& share) {
    return {share.first, share.end < item.chunks ? share.end : item.chunks};
  }

  TH_DEVICE u32 load_chunks(const Item& item, const Chunks& chunks, Cursor& cursor) const {
    auto pages = operation_.pages(item, chunks.first);
    TH_NO_UNROLL
    for (u32 chunk = chunks.first; chunk < chunks.end; ++chunk) {
      memory_.empty(cursor.slot).wait(cursor.phase);
      operation_.copy_chunk(item, pages, chunk, slot(cursor));
      cursor.advance();
    }
    return pages.flags;
  }

  TH_DEVICE void process_chunks(const Item& item, const Chunks& chunks, State& state, Cursor& cursor) const {
    operation_.begin(state);
    TH_NO_UNROLL
    for (u32 chunk = chunks.first; chunk < chunks.end; ++chunk) {
      operation_.process_chunk(item, state, chunk, slot(cursor));
      warp::sync();
      if (warp::lane() == 0) {
        memory_.empty(cursor.slot).arrive();
      }
      cursor.advance();
    }
  }

  /// Merges the warps' outputs, eight rows at a time; `use` takes a row of a head that all have stored. The warps
  /// synchronize before they write over rows that some may still read; there are none before the first item.
  template <typename Use>
  TH_DEVICE void merge(const Item& item, State& state, u32 warp, bool is_first, const Use& use) const {
    if (!is_first) {
      sync_warps();
    }
    operation_.finalize(state, memory_, warp);
    TH_UNROLL
    for (u32 first = 0; first < static_cast<u32>(config.rows); first += StreamKConfig::merged_rows) {
      if (first < item.rows) {
        if (first > 0) {
          sync_warps();
        }
        operation_.store_partials(state, memory_, warp, first);
        sync_warps();
        TH_NO_UNROLL
        for (u32 own = warp; own < static_cast<u32>(StreamKConfig::merged_rows * config.heads); own += config.warps) {
          const u32 row = first + own % StreamKConfig::merged_rows;
          if (row < item.rows) {
            use(own / StreamKConfig::merged_rows, row);
          }
        }
      }
    }
  }

  TH_DEVICE StreamKSlot slot(const Cursor& cursor) const {
    return {memory_.keys(cursor.slot), memory_.values(cursor.slot), memory_.keys_full(cursor.slot),
            memory_.values_full(cursor.slot), cursor.phase};
  }

  TH_DEVICE static void sync_warps() { named_barrier::sync(1, static_cast<u32>(config.warps) * 32); }

  const Operation& operation_;
  const StreamKMemory<config>& memory_;
};

}  // namespace thresher::pipeline::attention
