#pragma once
/// The skeleton of attention over a paged KV cache: few queries of many sequences, bound by the bytes of keys and
/// values.
///
/// A unit of work is a chunk of keys for one tile of query rows; an item is all units of one tile. A block takes an
/// equal share of neighbouring units, wherever items begin and end. An item that one block has whole is finished there.
/// For any other item, each block stores a part, and a second launch merges the parts. A block has at most two parts:
/// of the item that another block began, and of the one that it began and left to the next. Where items are alike,
/// blocks end where items do, as far as their shares stay about equal. Or clusters have whole items, and there is no
/// second launch (stream_k_cluster.hpp).
#include "pipeline/attention/stream_k_cluster.hpp"

namespace thresher::pipeline::attention {

/// The units of a call. Where clusters have items, the number of items.
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

/// The requirements of the skeleton on an operation.
///
/// One thread calls `prefetch` first of all. One warp makes the call's `Directory` in shared memory for all; it gives
/// flags of each lane. The lanes of the other loading warps `prefetch_block_table` before earlier grids have ended.
///
/// An Item has `first_unit`, `units`, of which the first `chunks` bring keys, and `rows`. The directory's `find` gives
/// the item of a unit, and `next` the one behind another. For clusters `find` gives an item by its number, the longest
/// first where there are few sequences, and an Item has a `place` too. A loading warp's lanes look up `pages` of an
/// item and `copy_chunk` into a slot, and `report` flags at the end: what was wrong with the call.
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
             const StreamKMemory<config>& memory, const ItemShare& share, u32 index, const PartPlace& place,
             const RowParts& parts) {
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
      { operation.merge_cluster_row(item, memory, parts, index, index) } -> Same<void>;
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
    flags |= work_.load(*this, own_);
    operation_.report(loader, flags);
  }

  TH_DEVICE void multiply(u32 warp) const {
    debug::role("math", warp);
    bool leaves = false;
    if (own_.first < own_.last) {
      const Item last = work_.multiply(*this, own_, warp);
      leaves = last.first_unit >= own_.first && last.first_unit + last.units > own_.last;
    }
    if (!leaves && warp == 0 && warp::lane() == 0) {
      operation_.record_split_item(Item{}, 0);
    }
  }

  TH_DEVICE Item first() const { return directory_.find(own_.first); }
  TH_DEVICE Item next(const Item& of) const { return directory_.next(of); }
  /// Records the item if others go on with it.
  TH_DEVICE void begin(const Item& item, const ItemShare& share, u32 warp) const {
    if (share.begins && !share.is_whole && warp == 0 && warp::lane() == 0) {
      operation_.record_split_item(item, shares_.owner(item.first_unit + item.units - 1) - block_ + 1);
    }
  }
  TH_DEVICE void get_ready() const {}
  TH_DEVICE void take_row(const Item& item, const ItemShare& share, u32 head, u32 row) const {
    operation_.combine_row(item, memory_, share, head, row);
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
    shares.open(warp);
    run(shares);
  } else {
    run(StreamK<config, Operation>(operation, memory));
  }
}

}  // namespace thresher::pipeline::attention
