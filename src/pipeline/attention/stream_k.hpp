#pragma once
/// The skeleton of attention over keys in pages: few queries of many sequences, bound by the bytes of keys and values.
///
/// The work of a call is a row of units, a chunk of keys for one tile of query rows each, item after item; a block
/// takes an equal share of neighbouring units, wherever items begin and end. An item that one block has whole is
/// finished there; of any other each of its blocks leaves a part, and a second launch merges them. A block has at most
/// two parts: of the item that another block began, and of the one that it began and left to the next.
///
/// Loading warps fill a ring of chunks, each a share of every chunk; the others multiply, 16 keys of each
/// chunk a warp, each with shifts and sums of its own, and meet only when an item ends.
///
/// Barriers of a block: keys_full[s], values_full[s] one arrival of each loading warp + the bytes of a chunk, or
/// without the copy engine one arrival of each loading thread; empty[s] one arrival of each multiplying warp. Named
/// barrier 1: the multiplying warps.
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
  /// Shift and sum of one row of the tile from one warp.
  TH_DEVICE Shared<Vector<float, 2>> sums(u32 warp, u32 row) const {
    return memory.offset_bytes(config.sums_offset()).template as<Vector<float, 2>>().offset(warp * config.rows + row);
  }
  TH_DEVICE Barrier barrier(u32 index) const {
    return Barrier{memory.offset_bytes(config.barrier_offset()).address}.offset(index);
  }
  TH_DEVICE Barrier keys_full(u32 slot) const { return barrier(slot); }
  TH_DEVICE Barrier values_full(u32 slot) const { return barrier(config.stages + slot); }
  TH_DEVICE Barrier empty(u32 slot) const { return barrier(2 * config.stages + slot); }
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
    fence::barrier_init();
  }
};

/// A slot of the ring, and the phase of its barriers.
template <int stages>
struct StreamKTurn {
  u32 slot = 0;
  Phase phase{};

  TH_DEVICE void advance() {
    slot = slot + 1 == static_cast<u32>(stages) ? 0 : slot + 1;
    if (slot == 0) {
      phase.flip();
    }
  }
};

/// Where a unit's chunk of keys goes, or lies. Copies complete on its barriers.
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
  /// Of copies by threads: this one has made all of its own.
  TH_DEVICE void keys_asked_for() const { async_copy::arrive_when_done(keys_full); }
  TH_DEVICE void values_asked_for() const { async_copy::arrive_when_done(values_full); }

  TH_DEVICE void wait_for_keys() const { keys_full.wait(phase); }
  TH_DEVICE void wait_for_values() const { values_full.wait(phase); }
};

/// Units [first, last) of all.
struct Units {
  u32 first;
  u32 last;
};

/// The share of `block`, one of `blocks`.
TH_DEVICE Units share_of(u32 block, u32 blocks, u32 units) {
  return {static_cast<u32>(static_cast<u64>(block) * units / blocks),
          static_cast<u32>(static_cast<u64>(block + 1) * units / blocks)};
}
/// The block whose share holds `unit`.
TH_DEVICE u32 owner_of(u32 unit, u32 blocks, u32 units) {
  return static_cast<u32>(((static_cast<u64>(unit) + 1) * blocks - 1) / units);
}
/// So many of the grid's blocks share the units.
template <StreamKConfig config>
TH_DEVICE u32 sharing_blocks(u32 units) {
  const u32 most = (units + static_cast<u32>(config.least_chunks) - 1) / static_cast<u32>(config.least_chunks);
  const u32 blocks = launch::block_count().x;
  return most < blocks ? (most == 0 ? 1 : most) : blocks;
}

/// What a block does with an item: whole, or one of its parts, which goes into a place of its own.
struct ItemShare {
  u32 first;  ///< of the item's units
  u32 end;
  bool is_whole;
  bool begins;
  u32 place;  ///< of the part
};

/// What the skeleton asks of an operation. One thread calls `prefetch` first of all. One warp `describe`s the call in
/// shared memory, for all. An Item has `first_unit`, `units`, of which the first `chunks` bring keys, and `rows`;
/// `find` gives the one of a unit. The loader's lanes make `Pages` of an item and `copy` a chunk into a slot. Each
/// multiplying warp `begin`s an item, `absorb`s chunks, for which it waits itself, and `settle`s; `spread` puts eight
/// rows of its sums into shared memory, and `combine` is what one warp makes of a row that all of them have spread. One
/// thread `announce`s what a block leaves to the second launch. The warps of a loader `report` flags: what was wrong
/// with the call.
template <class Operation, StreamKConfig config>
concept StreamKOperation =
    requires(const Operation& operation, const typename Operation::Item& item, typename Operation::Sums& sums,
             typename Operation::Pages& pages, const StreamKSlot& slot, const StreamKMemory<config>& memory,
             const ItemShare& share, Shared<u32> directory, u32 index) {
      { operation.describe(directory) } -> Same<u32>;
      { operation.prefetch() } -> Same<void>;
      { operation.units(directory) } -> Same<u32>;
      { operation.find(directory, index) } -> Same<typename Operation::Item>;
      { operation.pages(item, index) } -> Same<typename Operation::Pages>;
      { operation.copy(item, pages, index, slot) } -> Same<void>;
      { operation.begin(item, sums) } -> Same<void>;
      { operation.absorb(item, sums, index, slot) } -> Same<void>;
      { operation.settle(sums, memory, index) } -> Same<void>;
      { operation.spread(sums, memory, index, index) } -> Same<void>;
      { operation.combine(item, memory, share, index) } -> Same<void>;
      { operation.announce(item, index, index) } -> Same<void>;
      { operation.report(index, index) } -> Same<void>;
    };

template <StreamKConfig config, class Operation>
class StreamK {
 public:
  using Item = typename Operation::Item;

  TH_DEVICE StreamK(const Operation& operation, const StreamKMemory<config>& memory)
      : operation_(operation),
        memory_(memory),
        directory_(memory.directory()),
        units_(operation.units(directory_)),
        blocks_(sharing_blocks<config>(units_)),
        block_(launch::block_index().x),
        own_(block_ < blocks_ ? share_of(block_, blocks_, units_) : Units{0, 0}) {}

  TH_DEVICE void load(u32 loader, u32 flags) const {
    debug::role("load", loader);
    StreamKTurn<config.stages> turn{0, Phase{1}};
    TH_NO_UNROLL
    for (u32 unit = own_.first; unit < own_.last;) {
      const Item item = operation_.find(directory_, unit);
      const ItemShare share = share_of_item(item, unit);
      const u32 end = share.end < item.chunks ? share.end : item.chunks;
      auto pages = operation_.pages(item, share.first);
      TH_NO_UNROLL
      for (u32 chunk = share.first; chunk < end; ++chunk) {
        memory_.empty(turn.slot).wait(turn.phase);
        operation_.copy(item, pages, chunk, slot(turn));
        turn.advance();
      }
      flags |= pages.flags;
      unit = item.first_unit + share.end;
    }
    operation_.report(loader, flags);
  }

  TH_DEVICE void multiply(u32 warp) const {
    debug::role("math", warp);
    StreamKTurn<config.stages> turn;
    typename Operation::Sums sums;
    bool leaves = false;
    TH_NO_UNROLL
    for (u32 unit = own_.first; unit < own_.last;) {
      const Item item = operation_.find(directory_, unit);
      const ItemShare share = share_of_item(item, unit);
      const u32 end = share.end < item.chunks ? share.end : item.chunks;
      operation_.begin(item, sums);
      TH_NO_UNROLL
      for (u32 chunk = share.first; chunk < end; ++chunk) {
        operation_.absorb(item, sums, chunk, slot(turn));
        warp::sync();
        if (warp::lane() == 0) {
          memory_.empty(turn.slot).arrive();
        }
        turn.advance();
      }
      merge(item, share, sums, warp);
      if (share.begins && !share.is_whole) {
        leaves = true;
        announce(item, warp);
      }
      unit = item.first_unit + share.end;
    }
    if (!leaves && warp == 0 && warp::lane() == 0) {
      operation_.announce(Item{}, 0, blocks_);
    }
  }

 private:
  TH_DEVICE StreamKSlot slot(const StreamKTurn<config.stages>& turn) const {
    return {memory_.keys(turn.slot), memory_.values(turn.slot), memory_.keys_full(turn.slot),
            memory_.values_full(turn.slot), turn.phase};
  }

  TH_DEVICE ItemShare share_of_item(const Item& item, u32 unit) const {
    const u32 first = unit - item.first_unit;
    const u32 rest = own_.last - item.first_unit;
    const u32 end = rest < item.units ? rest : item.units;
    const bool begins = first == 0;
    return {first, end, begins && end == item.units, begins, 2 * block_ + (begins ? 1 : 0)};
  }

  /// The warps' sums, eight rows at a time.
  TH_DEVICE void merge(const Item& item, const ItemShare& share, typename Operation::Sums& sums, u32 warp) const {
    operation_.settle(sums, memory_, warp);
    TH_UNROLL
    for (u32 first = 0; first < static_cast<u32>(config.rows); first += StreamKConfig::merged_rows) {
      if (first < item.rows) {
        operation_.spread(sums, memory_, warp, first);
        meet();
        TH_NO_UNROLL
        for (u32 row = first + warp; row < first + StreamKConfig::merged_rows && row < item.rows; row += config.warps) {
          operation_.combine(item, memory_, share, row);
        }
        meet();
      }
    }
  }

  TH_DEVICE void announce(const Item& item, u32 warp) const {
    if (warp == 0 && warp::lane() == 0) {
      operation_.announce(item, owner_of(item.first_unit + item.units - 1, blocks_, units_) - block_ + 1, blocks_);
    }
  }

  TH_DEVICE static void meet() { named_barrier::sync(1, static_cast<u32>(config.warps) * 32); }

  const Operation& operation_;
  const StreamKMemory<config>& memory_;
  Shared<u32> directory_;
  u32 units_;
  u32 blocks_;
  u32 block_;
  Units own_;
};

/// The whole first launch.
template <StreamKConfig config, StreamKOperation<config> Operation>
TH_DEVICE void stream_k(const Operation& operation) {
  const StreamKMemory<config> memory{launch::shared_memory()};
  const u32 warp = warp::index();
  constexpr u32 loader = static_cast<u32>(config.warps);
  if (warp == 0 && warp::lane() == 0) {
    operation.prefetch();
    memory.init();
  }
  launch::wait_for_earlier_grids();
  u32 flags = 0;
  if (warp == loader) {
    flags = operation.describe(memory.directory());
  }
  block::sync();
  launch::release_dependents();
  const StreamK<config, Operation> blocks(operation, memory);
  if (warp >= loader) {
    blocks.load(warp - loader, flags);
  } else {
    blocks.multiply(warp);
  }
}

}  // namespace thresher::pipeline::attention
