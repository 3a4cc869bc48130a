#pragma once
/// Attention over a paged KV cache where clusters have whole tiles of query rows. A cluster has some tiles, and its
/// blocks share the chunks of all of them evenly, wherever tiles begin and end. The blocks of a tile send each other
/// their parts of its rows, into shared memory. One block merges a row, in the order of the blocks, so that the result
/// does not depend on which was first.
///
/// Barrier of a block, beside those of its ring: parts_full counts one arrival + the bytes of all parts of its rows,
/// and is used once. It is armed before the cluster's barrier, so that no block's bytes come before their count. A
/// block ends when it has all that the others sent, and they need nothing more of it.
#include "pipeline/attention/stream_k_block.hpp"

namespace thresher::pipeline::attention {

/// Where a block's part of a row goes: the output, and its maximum and sum. Both complete on `full`.
struct PartPlace {
  Remote<float> output;
  Remote<Vector<float, 2>> max_and_sum;
  RemoteBarrier full;
};

/// The parts of a row in the memory of the block that merges it, in the order of the blocks that sent them.
struct RowParts {
  u32 first;
  u32 stride;
  u32 count;

  TH_DEVICE u32 index(u32 part) const { return first + part * stride; }
};

/// The blocks of a cluster that share an item. The first of them, the largest power of two that there is, merge its
/// rows alternately, numbered over all its heads.
template <StreamKConfig config>
struct Sharers {
  u32 first;
  u32 count;

  TH_DEVICE u32 merging() const { return 1U << shift(); }
  TH_DEVICE u32 block(u32 row) const { return first + row % merging(); }
  /// A block shares two items at most: one that it continues, and then one that it begins, whose first block it is.
  TH_DEVICE RowParts parts(u32 row) const {
    const u32 own_rows = static_cast<u32>(config.tile_rows()) >> shift();
    const u32 before = !config.single_tiles && row % merging() == 0 ? config.tile_parts() : 0;
    return {before + (row >> shift()), own_rows == 0 ? 1 : own_rows, count};
  }

 private:
  TH_DEVICE u32 shift() const {
    u32 shift = 0;
    TH_UNROLL
    for (u32 blocks = 2; blocks <= static_cast<u32>(config.cluster); blocks *= 2) {
      shift += blocks <= count ? 1 : 0;
    }
    return shift;
  }
};

/// The items of a cluster. The clusters take them back and forth, so that each gets longer and shorter ones. There are
/// at most as many as a warp has lanes; all lanes of a warp call each function.
template <StreamKConfig config, class Directory, class Item>
class ClusterItems {
 public:
  TH_DEVICE ClusterItems(const Directory& directory, u32 cluster, u32 clusters)
      : directory_(directory), cluster_(cluster), clusters_(clusters) {
    const u32 items = directory.extent().units;
    if (cluster < items) {
      first_ = at(0, 0);
    }
    end_ = first_.units;
    if (!config.single_tiles && items > clusters) {
      const u32 lane = warp::lane();
      end_ = sum_to_lane(number(lane) < items ? directory.find(number(lane)).units : 0, 32);
    }
  }

  TH_DEVICE u32 units() const { return config.single_tiles ? first_.units : warp::shuffle(end_, 31); }

  /// The item of a unit; units are counted from the cluster's first.
  TH_DEVICE Item find(u32 unit) const {
    if (config.single_tiles || unit < first_.units) {
      return first_;
    }
    const u32 place = bits::count_ones(warp::ballot(end_ <= unit));
    return at(place, warp::shuffle(end_, place - 1));
  }
  TH_DEVICE Item next(const Item& of) const { return at(of.place + 1, of.first_unit + of.units); }

 private:
  /// The number of the cluster's `place`-th item among those of all clusters.
  TH_DEVICE u32 number(u32 place) const {
    return place * clusters_ + (place % 2 == 0 ? cluster_ : clusters_ - 1 - cluster_);
  }
  TH_DEVICE Item at(u32 place, u32 first_unit) const {
    Item item = directory_.find(number(place));
    item.place = place;
    item.first_unit = first_unit;
    return item;
  }

  Directory directory_;
  u32 cluster_;
  u32 clusters_;
  Item first_{};
  u32 end_;  ///< behind the units of the lane's item; of the only one in all lanes
};

template <StreamKConfig config, class Operation>
class StreamKCluster {
 public:
  using Block = StreamKBlock<config, Operation>;
  using Item = typename Operation::Item;

  TH_DEVICE StreamKCluster(const Operation& operation, const StreamKMemory<config>& memory)
      : operation_(operation),
        memory_(memory),
        block_(operation, memory),
        rank_(cluster::rank()),
        items_(operation.directory(memory.directory()), launch::block_index().x / blocks,
               launch::block_count().x / blocks),
        split_(EvenSplit::among(items_.units(), blocks)),
        own_{split_.first(rank_), split_.first(rank_ + 1)} {
    if (config.single_tiles || has_units()) {
      first_ = items_.find(own_.first);
    }
  }

  /// By all threads of the block: from here on others may send.
  TH_DEVICE void open(u32 warp) const {
    if (warp == 0 && has_units()) {
      const u32 parts = count_parts();
      if (parts > 0 && warp::lane() == 0) {
        memory_.parts_full().arrive_expect_bytes(parts * config.part_bytes());
      }
    }
    warp::sync();
    cluster::arrive_relaxed();
  }

  TH_DEVICE void load(u32 loader, u32 flags) const {
    debug::role("load", loader);
    flags |= block_.load(*this, own_);
    operation_.report(loader, flags);
    warp::sync();
    cluster::wait();
  }

  TH_DEVICE void multiply(u32 warp) const {
    debug::role("math", warp);
    if (!has_units()) {
      cluster::wait();
      return;
    }
    Item item = block_.multiply(*this, own_, warp);
    TH_NO_UNROLL
    while (true) {
      merge_rows(item, warp);
      if (item.first_unit <= own_.first) {
        break;
      }
      item = items_.find(own_.first);
    }
  }

  TH_DEVICE Item first() const { return first_; }
  TH_DEVICE Item next(const Item& of) const { return items_.next(of); }
  TH_DEVICE void begin(const Item&, const ItemShare&, u32) const {}
  TH_DEVICE void get_ready() const {
    warp::sync();
    cluster::wait();
  }
  /// Sends the row to the block that merges it, unless this block has its item whole. A single item is always sent.
  TH_DEVICE void take_row(const Item& item, const ItemShare& share, u32 head, u32 row) const {
    if (!config.single_tiles && share.is_whole) {
      operation_.combine_row(item, memory_, share, head, row);
      return;
    }
    const Sharers<config> sharers = this->sharers(item);
    const u32 index = head * static_cast<u32>(config.rows) + row;
    const u32 to = sharers.block(index);
    const u32 part = sharers.parts(index).index(rank_ - sharers.first);
    operation_.send_row(memory_,
                        {cluster::map(memory_.part(part), to), cluster::map(memory_.part_sums(part), to),
                         cluster::map(memory_.parts_full(), to)},
                        head, row);
  }

 private:
  static constexpr u32 blocks = static_cast<u32>(config.cluster);

  TH_DEVICE bool has_units() const { return own_.first < own_.last; }

  /// By all lanes of a warp.
  TH_DEVICE Sharers<config> sharers(const Item& item) const {
    if (config.single_tiles) {
      return {0, item.units < blocks ? item.units : blocks};
    }
    const u32 first = owner(item.first_unit);
    return {first, owner(item.first_unit + item.units - 1) - first + 1};
  }
  /// The block that has the unit: the last one whose share begins no later.
  TH_DEVICE u32 owner(u32 unit) const {
    const u32 lane = warp::lane();
    return bits::count_ones(warp::ballot(lane > 0 && lane < blocks && split_.first(lane) <= unit));
  }

  /// Calls `use(head, row, parts)` for every `step`-th row that this block merges of an item which blocks share.
  template <class Use>
  TH_DEVICE void each_own_row(const Item& item, u32 begin, u32 step, const Use& use) const {
    const Sharers<config> sharers = this->sharers(item);
    const u32 place = rank_ - sharers.first;
    if (place >= sharers.merging() || (!config.single_tiles && sharers.count == 1)) {
      return;
    }
    TH_NO_UNROLL
    for (u32 index = place + begin * sharers.merging(); index < static_cast<u32>(config.tile_rows());
         index += step * sharers.merging()) {
      const u32 row = index % static_cast<u32>(config.rows);
      if (row < item.rows) {
        use(index / static_cast<u32>(config.rows), row, sharers.parts(index));
      }
    }
  }

  /// The parts that others and this block itself send to this one, of its first and its last item.
  TH_DEVICE u32 count_parts() const {
    u32 count = 0;
    Item item = first_;
    TH_NO_UNROLL
    while (true) {
      each_own_row(item, 0, 1, [&](u32, u32, const RowParts& parts) { count += parts.count; });
      if (config.single_tiles || item.first_unit + item.units >= own_.last) {
        return count;
      }
      item = items_.find(own_.last - 1);
    }
  }

  TH_DEVICE void merge_rows(const Item& item, u32 warp) const {
    each_own_row(item, warp, static_cast<u32>(config.warps), [&](u32 head, u32 row, const RowParts& parts) {
      memory_.parts_full().wait_cluster(Phase{});
      operation_.merge_cluster_row(item, memory_, parts, head, row);
    });
  }

  const Operation& operation_;
  const StreamKMemory<config>& memory_;
  Block block_;
  u32 rank_;
  ClusterItems<config, typename Operation::Directory, Item> items_;
  EvenSplit split_;
  Units own_;
  Item first_{};
};

}  // namespace thresher::pipeline::attention
