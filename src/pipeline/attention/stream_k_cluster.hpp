#pragma once
/// Attention over a paged KV cache where each tile of query rows has a cluster. The blocks share the tile's chunks
/// evenly, whatever the lengths are. They send each other their parts of the rows, into shared memory. One block merges
/// a row, in the order of the blocks, so that the result does not depend on which was first.
///
/// Barrier of a block, beside those of its ring: parts_full one arrival + the bytes of its rows from every block that
/// has chunks, used once. It is armed before the cluster's barrier, so that no block's bytes come before their count. A
/// block ends when it has all that the others sent, and they need nothing more of it.
#include "pipeline/attention/stream_k_block.hpp"

namespace thresher::pipeline::attention {

/// Where a block's part of a row goes: the output, and its maximum and sum. Both complete on `full`.
struct PartPlace {
  Remote<float> output;
  Remote<Vector<float, 2>> max_and_sum;
  RemoteBarrier full;
};

/// A row of one of a tile's heads.
struct TileRow {
  u32 head;
  u32 row;
};

/// Which block merges which rows: they alternate.
template <StreamKConfig config>
struct RowsOfCluster {
  static constexpr u32 blocks = static_cast<u32>(config.cluster);

  TH_DEVICE static u32 index(const TileRow& of) { return of.head * static_cast<u32>(config.rows) + of.row; }
  TH_DEVICE static u32 block_of(const TileRow& of) { return index(of) % blocks; }
  TH_DEVICE static u32 place_of(const TileRow& of) { return index(of) / blocks; }
  /// The `place`-th of a block's; its head is none of the tile's where the block has fewer.
  TH_DEVICE static TileRow row_of(u32 block, u32 place) {
    const u32 index = place * blocks + block;
    return {index / static_cast<u32>(config.rows), index % static_cast<u32>(config.rows)};
  }
};

template <StreamKConfig config, class Operation>
class StreamKCluster {
 public:
  using Block = StreamKBlock<config, Operation>;
  using Item = typename Operation::Item;

  /// Items are numbered as clusters are; of clusters there may be more.
  TH_DEVICE StreamKCluster(const Operation& operation, const StreamKMemory<config>& memory)
      : operation_(operation), memory_(memory), block_(operation, memory), rank_(cluster::rank()) {
    const u32 index = launch::block_index().x / Rows::blocks;
    const auto directory = operation.directory(memory.directory());
    has_item_ = index < directory.extent().units;
    if (has_item_) {
      item_ = directory.find(index);
      sharers_ = item_.chunks < Rows::blocks ? (item_.chunks == 0 ? 1 : item_.chunks) : Rows::blocks;
    }
  }

  /// By all threads of the block: from here on others may send.
  TH_DEVICE void open(bool is_one_thread) const {
    if (is_one_thread) {
      const u32 rows = count_own_rows();
      if (rows > 0) {
        memory_.parts_full().arrive_expect_bytes(rows * sharers_ * config.part_bytes());
      }
    }
    warp::sync();
    cluster::arrive_relaxed();
  }

  TH_DEVICE void load(u32 loader, u32 flags) const {
    debug::role("load", loader);
    if (shares()) {
      typename Block::Cursor cursor{0, Phase{1}};
      flags |= block_.load_chunks(item_, own_chunks(), cursor);
    }
    operation_.report(loader, flags);
    warp::sync();
    cluster::wait();
  }

  TH_DEVICE void multiply(u32 warp) const {
    debug::role("math", warp);
    if (shares()) {
      contribute(warp);
    } else {
      cluster::wait();
    }
    TH_NO_UNROLL
    for (u32 place = warp; place < static_cast<u32>(config.own_rows()); place += static_cast<u32>(config.warps)) {
      const TileRow own = Rows::row_of(rank_, place);
      if (is_there(own)) {
        memory_.parts_full().wait_cluster(Phase{});
        operation_.merge_cluster_row(item_, memory_, sharers_, place, own.head, own.row);
      }
    }
  }

 private:
  using Rows = RowsOfCluster<config>;

  TH_DEVICE bool shares() const { return has_item_ && rank_ < sharers_; }

  TH_DEVICE Chunks own_chunks() const {
    const EvenSplit split = EvenSplit::among(item_.chunks, sharers_);
    return {split.first(rank_), split.first(rank_ + 1)};
  }

  TH_DEVICE void contribute(u32 warp) const {
    typename Block::Cursor cursor;
    typename Operation::State state;
    operation_.load_queries(item_, state);
    block_.process_chunks(item_, own_chunks(), state, cursor);
    warp::sync();
    cluster::wait();
    block_.merge(item_, state, warp, true, [&](u32 head, u32 row) { send({head, row}); });
  }

  TH_DEVICE bool is_there(const TileRow& row) const {
    return has_item_ && row.head < static_cast<u32>(config.heads) && row.row < item_.rows;
  }

  TH_DEVICE u32 count_own_rows() const {
    u32 count = 0;
    TH_UNROLL
    for (u32 place = 0; place < static_cast<u32>(config.own_rows()); ++place) {
      count += is_there(Rows::row_of(rank_, place)) ? 1 : 0;
    }
    return count;
  }

  TH_DEVICE void send(const TileRow& row) const {
    const u32 to = Rows::block_of(row);
    const u32 place = Rows::place_of(row);
    operation_.send_row(memory_,
                        {cluster::map(memory_.part(rank_, place), to),
                         cluster::map(memory_.part_sums(rank_, place), to), cluster::map(memory_.parts_full(), to)},
                        row.head, row.row);
  }

  const Operation& operation_;
  const StreamKMemory<config>& memory_;
  Block block_;
  u32 rank_;
  u32 sharers_ = 1;
  bool has_item_;
  Item item_{};
};

}  // namespace thresher::pipeline::attention
