#pragma once
/// The skeleton of attention over a paged KV cache: few queries of many sequences, bound by the bytes of keys and
/// values.
///
/// A unit of work is a chunk of keys for one tile of query rows; an item is all units of one tile. A block takes an
/// equal share of neighbouring units, wherever items begin and end. An item that one block has whole is finished there.
/// For any other item, each block stores a part, and a second launch merges the parts. A block has at most two parts:
/// of the item that another block began, and of the one that it began and left to the next. Where items are alike,
/// blocks end where items do, as far as their shares stay about equal. Or each item has a cluster, and there is no
/// second launch (stream_k_cluster.hpp).
#include "pipeline/attention/stream_k_cluster.hpp"

namespace thresher::pipeline::attention {

/// Units [first, last) of the call.
struct Units {
  u32 first;
  u32 last;
};

/// The units of a call. Where items have clusters, each is one unit.
struct Extent {
  u32 units;
  u32 item_units;  ///< of every item; 0 where items differ
};

/// How the blocks share the units. They share them evenly, or so that blocks end where items do: where all items are
/// alike and no block gets many more for it. Then an item has blocks of its own, or a block has whole items.
class Shares {
 public:
  TH_DEVICE Shares(const Extent& extent, u32 blocks, bool aligned)
      : group_(extent.units), sharers_(blocks), split_(EvenSplit::among(extent.units, blocks)), blocks_(blocks) {
    if (aligned && extent.units > blocks && extent.item_units > 1) {
      align(extent, split_.max());
    }
  }

  /// The number of blocks that have a share.
  TH_DEVICE u32 blocks() const { return blocks_; }
  TH_DEVICE Units of(u32 block) const {
    const u32 group = block / sharers_;
    const u32 sharer = block - group * sharers_;
    const u32 before = group * group_;
    return {before + split_.first(sharer) * span_, before + split_.first(sharer + 1) * span_};
  }
  TH_DEVICE u32 owner(u32 unit) const {
    const u32 group = unit / group_;
    return group * sharers_ + split_.owner((unit - group * group_) / span_);
  }

 private:
  /// A block that ends elsewhere has one item more to begin and to end, which takes about as long as a unit. A long
  /// share may get more for it: when some blocks are done, the others' units arrive earlier.
  TH_DEVICE void align(const Extent& extent, u32 evenly) {
    constexpr u32 max_units = 4;
    const u32 sixteenth = evenly / 16;
    const u32 worth = evenly + (sixteenth < 1 ? 1 : sixteenth < max_units ? sixteenth : max_units);
    const u32 items = extent.units / extent.item_units;
    if (items > blocks_) {
      const EvenSplit whole = EvenSplit::among(items, blocks_);
      if (whole.max() * extent.item_units <= worth) {
        split_ = whole;
        span_ = extent.item_units;
      }
      return;
    }
    const u32 fitting = blocks_ / items;
    const u32 parts = fitting < extent.item_units ? fitting : extent.item_units;
    const EvenSplit part = EvenSplit::among(extent.item_units, parts);
    if (part.max() <= worth) {
      split_ = part;
      group_ = extent.item_units;
      sharers_ = parts;
      blocks_ = items * parts;
    }
  }

  u32 group_;    ///< units that `sharers_`
  u32 sharers_;  ///< neighbouring blocks share
  EvenSplit split_;
  u32 span_ = 1;  ///< units of each thing that is split
  u32 blocks_;
};

/// The number of the grid's blocks that may have a share.
template <StreamKConfig config>
TH_DEVICE u32 sharing_blocks(u32 units) {
  const u32 most = (units + static_cast<u32>(config.least_chunks) - 1) / static_cast<u32>(config.least_chunks);
  const u32 blocks = launch::block_count().x;
  return most < blocks ? (most == 0 ? 1 : most) : blocks;
}

/// A block's share of an item: all of it, or a part, which has a place of its own.
struct ItemShare {
  u32 first;  ///< of the item's units
  u32 end;
  bool is_whole;
  bool begins;
  u32 place;  ///< of the part
};

/// The requirements of the skeleton on an operation.
///
/// One thread calls `prefetch` first of all. One warp makes the call's `Directory` in shared memory for all; it gives
/// flags of each lane. The lanes of the other loading warps `prefetch_block_table` before earlier grids have ended.
///
/// An Item has `first_unit`, `units`, of which the first `chunks` bring keys, and `rows`. The directory's `find` gives
/// the item of a unit, and `next` the one behind another. A loading warp's lanes look up `pages` of an item and
/// `copy_chunk` into a slot, and `report` flags at the end: what was wrong with the call.
///
/// Each multiplying warp does `load_queries` of an item, which may be while it still finalizes the one before it. Then
/// it does `begin`, `process_chunk`, which waits for the slot itself, and `finalize`. `store_partials` puts eight rows
/// of its output into shared memory. One warp then does `combine_row` for each row of a head. One thread of each block
/// does `record_split_item`: what the block leaves to the second launch. In a cluster one warp does `send_row` instead,
/// and `merge_cluster_row` for each row of its block.
template <class Operation, StreamKConfig config>
concept StreamKOperation =
    requires(const Operation& operation, const typename Operation::Item& item, typename Operation::State& state,
             typename Operation::Pages& pages, const typename Operation::Directory& directory, const StreamKSlot& slot,
             const StreamKMemory<config>& memory, const ItemShare& share, u32 index, const PartPlace& place) {
      { operation.directory(memory.directory()) } -> Same<typename Operation::Directory>;
      { directory.make() } -> Same<u32>;
      { directory.extent() } -> Same<Extent>;
      { directory.find(index) } -> Same<typename Operation::Item>;
      { directory.next(item) } -> Same<typename Operation::Item>;
      { operation.prefetch() } -> Same<void>;
      { operation.prefetch_block_table(index) } -> Same<void>;
      { operation.pages(item, index) } -> Same<typename Operation::Pages>;
      { operation.copy_chunk(item, pages, index, slot) } -> Same<void>;
      { operation.report(index, index) } -> Same<void>;
      { operation.load_queries(item, state) } -> Same<void>;
      { operation.begin(state) } -> Same<void>;
      { operation.process_chunk(item, state, index, slot) } -> Same<void>;
      { operation.finalize(state, memory, index) } -> Same<void>;
      { operation.store_partials(state, memory, index, index) } -> Same<void>;
      { operation.combine_row(item, memory, share, index, index) } -> Same<void>;
      { operation.record_split_item(item, index) } -> Same<void>;
      { operation.send_row(memory, place, index, index) } -> Same<void>;
      { operation.merge_cluster_row(item, memory, index, index, index, index) } -> Same<void>;
    };

template <StreamKConfig config, class Operation>
class StreamK {
 public:
  using Block = StreamKBlock<config, Operation>;
  using Item = typename Operation::Item;

  TH_DEVICE StreamK(const Operation& operation, const StreamKMemory<config>& memory)
      : StreamK(operation, memory, operation.directory(memory.directory())) {}

  TH_DEVICE void load(u32 loader, u32 flags) const {
    debug::role("load", loader);
    typename Block::Cursor cursor{0, Phase{1}};
    if (own_.first < own_.last) {
      Item item = directory_.find(own_.first);
      TH_NO_UNROLL
      for (u32 unit = own_.first;;) {
        const ItemShare share = share_of_item(item, unit);
        flags |= work_.load_chunks(item, chunks_of(item, share), cursor);
        unit = item.first_unit + share.end;
        if (unit == own_.last) {
          break;
        }
        item = directory_.next(item);
      }
    }
    operation_.report(loader, flags);
  }

  TH_DEVICE void multiply(u32 warp) const {
    debug::role("math", warp);
    bool leaves = false;
    if (own_.first < own_.last) {
      leaves = attend(warp);
    }
    if (!leaves && warp == 0 && warp::lane() == 0) {
      operation_.record_split_item(Item{}, 0);
    }
  }

 private:
  TH_DEVICE StreamK(const Operation& operation, const StreamKMemory<config>& memory,
                    const typename Operation::Directory& directory)
      : operation_(operation),
        memory_(memory),
        work_(operation, memory),
        directory_(directory),
        extent_(directory.extent()),
        shares_(extent_, sharing_blocks<config>(extent_.units), config.aligned),
        block_(launch::block_index().x),
        own_(block_ < shares_.blocks() ? shares_.of(block_) : Units{0, 0}) {}

  /// Processes the block's share. Whether others go on with an item that it began.
  TH_DEVICE bool attend(u32 warp) const {
    typename Block::Cursor cursor;
    typename Operation::State state;
    Item item = directory_.find(own_.first);
    operation_.load_queries(item, state);
    TH_NO_UNROLL
    for (u32 unit = own_.first;;) {
      const ItemShare share = share_of_item(item, unit);
      const bool leaves = share.begins && !share.is_whole;
      if (leaves) {
        record_split_item(item, warp);
      }
      work_.process_chunks(item, chunks_of(item, share), state, cursor);
      const bool is_first = unit == own_.first;
      unit = item.first_unit + share.end;
      const bool is_last = unit == own_.last;
      Item next = item;
      if (!is_last) {
        next = directory_.next(item);
        operation_.load_queries(next, state);
      }
      work_.merge(item, state, warp, is_first,
                  [&](u32 head, u32 row) { operation_.combine_row(item, memory_, share, head, row); });
      if (is_last) {
        return leaves;
      }
      item = next;
    }
  }

  TH_DEVICE ItemShare share_of_item(const Item& item, u32 unit) const {
    const u32 first = unit - item.first_unit;
    const u32 rest = own_.last - item.first_unit;
    const u32 end = rest < item.units ? rest : item.units;
    const bool begins = first == 0;
    return {first, end, begins && end == item.units, begins, 2 * block_ + (begins ? 1 : 0)};
  }

  TH_DEVICE static Chunks chunks_of(const Item& item, const ItemShare& share) {
    return {share.first, share.end < item.chunks ? share.end : item.chunks};
  }

  TH_DEVICE void record_split_item(const Item& item, u32 warp) const {
    if (warp == 0 && warp::lane() == 0) {
      operation_.record_split_item(item, shares_.owner(item.first_unit + item.units - 1) - block_ + 1);
    }
  }

  const Operation& operation_;
  const StreamKMemory<config>& memory_;
  Block work_;
  typename Operation::Directory directory_;
  Extent extent_;
  Shares shares_;
  u32 block_;
  Units own_;
};

/// The whole first launch, or the only one.
template <StreamKConfig config, StreamKOperation<config> Operation>
TH_DEVICE void stream_k(const Operation& operation) {
  const StreamKMemory<config> memory{launch::shared_memory()};
  const u32 warp = warp::index();
  constexpr u32 loader = static_cast<u32>(config.warps);
  if (warp == 0 && warp::lane() == 0) {
    operation.prefetch();
    memory.init();
  }
  if (warp > loader) {
    operation.prefetch_block_table((warp - loader - 1) * 32 + warp::lane());
  }
  launch::wait_for_earlier_grids();
  u32 flags = 0;
  if (warp == loader) {
    flags = operation.directory(memory.directory()).make();
  }
  block::sync();
  launch::release_dependents();
  const auto run = [&](const auto& shares) {
    if (warp >= loader) {
      shares.load(warp - loader, flags);
    } else {
      shares.multiply(warp);
    }
  };
  if constexpr (config.is_clustered()) {
    const StreamKCluster<config, Operation> shares(operation, memory);
    shares.open(warp == 0 && warp::lane() == 0);
    run(shares);
  } else {
    run(StreamK<config, Operation>(operation, memory));
  }
}

}  // namespace thresher::pipeline::attention
