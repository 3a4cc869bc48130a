#pragma once
/// The skeleton of attention over keys in pages: few queries of many sequences, bound by the bytes of keys and values.
///
/// The work of a call is a row of units, a chunk of keys for one tile of query rows each, item after item; a block
/// takes an equal share of neighbouring units, wherever items begin and end. An item that one block has whole is
/// finished there; of any other each of its blocks leaves a part, and a second launch merges them. A block has at most
/// two parts: of the item that another block began, and of the one that it began and left to the next. Where items are
/// alike, blocks end where items do as far as that leaves them about as much each. Or each item has a cluster, and
/// there is no second launch (stream_k_cluster.hpp).
#include "pipeline/attention/stream_k_cluster.hpp"

namespace thresher::pipeline::attention {

/// Units [first, last) of all.
struct Units {
  u32 first;
  u32 last;
};

/// All the units of a call. Where items have clusters, each is one unit.
struct Extent {
  u32 units;
  u32 item_units;  ///< of every item; 0 where items differ
};

/// How the blocks share the units: evenly, or, where all items are alike and no block takes many more for it, so that
/// blocks end where items do. Then an item's parts are blocks of its own, or a block has whole items.
class Shares {
 public:
  TH_DEVICE Shares(const Extent& extent, u32 blocks, bool aligned)
      : group_(extent.units), sharers_(blocks), dealt_(Dealt::among(extent.units, blocks)), blocks_(blocks) {
    if (aligned && extent.units > blocks && extent.item_units > 1) {
      align(extent, dealt_.most());
    }
  }

  /// So many have a share.
  TH_DEVICE u32 blocks() const { return blocks_; }
  TH_DEVICE Units of(u32 block) const {
    const u32 group = block / sharers_;
    const u32 sharer = block - group * sharers_;
    const u32 before = group * group_;
    return {before + dealt_.first(sharer) * span_, before + dealt_.first(sharer + 1) * span_};
  }
  TH_DEVICE u32 owner(u32 unit) const {
    const u32 group = unit / group_;
    return group * sharers_ + dealt_.owner((unit - group * group_) / span_);
  }

 private:
  /// A block that ends elsewhere has one item more to begin and to end, which takes about as long as a unit. In a long
  /// share more may be given for it: while some blocks are done, the others' units are there earlier.
  TH_DEVICE void align(const Extent& extent, u32 evenly) {
    constexpr u32 max_units = 4;
    const u32 sixteenth = evenly / 16;
    const u32 worth = evenly + (sixteenth < 1 ? 1 : sixteenth < max_units ? sixteenth : max_units);
    const u32 items = extent.units / extent.item_units;
    if (items > blocks_) {
      const Dealt whole = Dealt::among(items, blocks_);
      if (whole.most() * extent.item_units <= worth) {
        dealt_ = whole;
        span_ = extent.item_units;
      }
      return;
    }
    const u32 fitting = blocks_ / items;
    const u32 parts = fitting < extent.item_units ? fitting : extent.item_units;
    const Dealt part = Dealt::among(extent.item_units, parts);
    if (part.most() <= worth) {
      dealt_ = part;
      group_ = extent.item_units;
      sharers_ = parts;
      blocks_ = items * parts;
    }
  }

  u32 group_;    ///< units that so many
  u32 sharers_;  ///< neighbouring blocks share
  Dealt dealt_;
  u32 span_ = 1;  ///< units of a thing dealt
  u32 blocks_;
};

/// So many of the grid's blocks may have a share.
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
/// shared memory, for all, with flags of each lane; the lanes of the other loading warps `foresee`, before earlier
/// grids have ended, what will be looked up then. An Item has `first_unit`, `units`, of which the first `chunks` bring
/// keys, and `rows`; `find` gives the one of a unit, `next` the one behind another. The loader's lanes make `Pages` of
/// an item and `copy` a chunk into a slot. Each multiplying warp asks for an item's queries, which may be while it
/// still settles the one before it, `begin`s it, `absorb`s chunks, for which it waits itself, and `settle`s; `spread`
/// puts eight rows of its sums into shared memory, and `combine` is what one warp makes of a row of a head that this
/// one's warps have spread, which are neighbours. One thread of each block `announce`s what it leaves to the second
/// launch. In a cluster one warp `send`s such a row instead, sums and a shift and a sum, and `merge`s the so-many-th of
/// its block's own from so many parts. The warps of a loader `report` flags: what was wrong with the call.
template <class Operation, StreamKConfig config>
concept StreamKOperation =
    requires(const Operation& operation, const typename Operation::Item& item, typename Operation::Sums& sums,
             typename Operation::Pages& pages, const StreamKSlot& slot, const StreamKMemory<config>& memory,
             const ItemShare& share, Shared<u32> directory, u32 index, const PartPlace& place) {
      { operation.describe(directory) } -> Same<u32>;
      { operation.prefetch() } -> Same<void>;
      { operation.foresee(index) } -> Same<void>;
      { operation.extent(directory) } -> Same<Extent>;
      { operation.find(directory, index) } -> Same<typename Operation::Item>;
      { operation.next(directory, item) } -> Same<typename Operation::Item>;
      { operation.pages(item, index) } -> Same<typename Operation::Pages>;
      { operation.copy(item, pages, index, slot) } -> Same<void>;
      { operation.ask_for_queries(item, sums) } -> Same<void>;
      { operation.begin(sums) } -> Same<void>;
      { operation.absorb(item, sums, index, slot) } -> Same<void>;
      { operation.settle(sums, memory, index) } -> Same<void>;
      { operation.spread(sums, memory, index, index) } -> Same<void>;
      { operation.combine(item, memory, share, index, index) } -> Same<void>;
      { operation.announce(item, index) } -> Same<void>;
      { operation.send(memory, place, index, index) } -> Same<void>;
      { operation.merge(item, memory, index, index, index, index) } -> Same<void>;
      { operation.report(index, index) } -> Same<void>;
    };

template <StreamKConfig config, class Operation>
class StreamK {
 public:
  using Block = StreamKBlock<config, Operation>;
  using Item = typename Operation::Item;

  TH_DEVICE StreamK(const Operation& operation, const StreamKMemory<config>& memory)
      : StreamK(operation, memory, operation.extent(memory.directory())) {}

  TH_DEVICE void load(u32 loader, u32 flags) const {
    debug::role("load", loader);
    typename Block::Turn turn{0, Phase{1}};
    if (own_.first < own_.last) {
      Item item = operation_.find(directory_, own_.first);
      TH_NO_UNROLL
      for (u32 unit = own_.first;;) {
        const ItemShare share = share_of_item(item, unit);
        flags |= work_.bring(item, chunks_of(item, share), turn);
        unit = item.first_unit + share.end;
        if (unit == own_.last) {
          break;
        }
        item = operation_.next(directory_, item);
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
      operation_.announce(Item{}, 0);
    }
  }

 private:
  TH_DEVICE StreamK(const Operation& operation, const StreamKMemory<config>& memory, const Extent& extent)
      : operation_(operation),
        memory_(memory),
        work_(operation, memory),
        directory_(memory.directory()),
        shares_(extent, sharing_blocks<config>(extent.units), config.aligned),
        block_(launch::block_index().x),
        own_(block_ < shares_.blocks() ? shares_.of(block_) : Units{0, 0}) {}

  /// The block's share. Whether it leaves an item to others that it began.
  TH_DEVICE bool attend(u32 warp) const {
    typename Block::Turn turn;
    typename Operation::Sums sums;
    Item item = operation_.find(directory_, own_.first);
    operation_.ask_for_queries(item, sums);
    TH_NO_UNROLL
    for (u32 unit = own_.first;;) {
      const ItemShare share = share_of_item(item, unit);
      const bool leaves = share.begins && !share.is_whole;
      if (leaves) {
        announce(item, warp);
      }
      work_.absorb(item, chunks_of(item, share), sums, turn);
      const bool is_first = unit == own_.first;
      unit = item.first_unit + share.end;
      const bool is_last = unit == own_.last;
      Item next = item;
      if (!is_last) {
        next = operation_.next(directory_, item);
        operation_.ask_for_queries(next, sums);
      }
      work_.merge(item, sums, warp, is_first,
                  [&](u32 head, u32 row) { operation_.combine(item, memory_, share, head, row); });
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

  TH_DEVICE void announce(const Item& item, u32 warp) const {
    if (warp == 0 && warp::lane() == 0) {
      operation_.announce(item, shares_.owner(item.first_unit + item.units - 1) - block_ + 1);
    }
  }

  const Operation& operation_;
  const StreamKMemory<config>& memory_;
  Block work_;
  Shared<u32> directory_;
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
    operation.foresee((warp - loader - 1) * 32 + warp::lane());
  }
  launch::wait_for_earlier_grids();
  u32 flags = 0;
  if (warp == loader) {
    flags = operation.describe(memory.directory());
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
