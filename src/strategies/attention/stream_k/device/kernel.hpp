#pragma once
/// `stream_k`: a paged KV cache, and few queries in each sequence.
#include "strategies/attention/stream_k/device/chunk.hpp"
#include "strategies/attention/stream_k/device/merge.hpp"

namespace thresher::strategies::attention {

using pipeline::attention::ItemShare;
using pipeline::attention::PartPlace;
using pipeline::attention::RowParts;
using pipeline::attention::StreamKMemory;

/// The operation of the skeleton. Its bases load and multiply, and it merges the outputs of a block's warps to rows. A
/// row goes to the output, to a part that the second launch merges, or to the block of the cluster that merges it. Lane
/// l owns columns [l·V/32, (l+1)·V/32).
template <StreamKConfig config, typename Element, typename KeyElement, Logits logits, typename QueryElement>
class StreamKAttention : public StreamKCopies<config>,
                         public StreamKChunks<config, Element, KeyElement, logits, QueryElement> {
  using Warps = StreamKWarps<config>;
  using Chunks = StreamKChunks<config, Element, KeyElement, logits, QueryElement>;
  static constexpr int owned = config.value_dim / 32;
  static constexpr int wide = owned < 4 ? owned : 4;
  using Row = RowState<owned>;

 public:
  using Item = StreamKItem;
  using State = typename Chunks::State;
  using Directory = KeyDirectory<config>;

  TH_DEVICE explicit StreamKAttention(const StreamKParams& params)
      : StreamKCopies<config>(params), Chunks(params), params_(params) {}

  TH_DEVICE Directory directory(Shared<u32> memory) const { return Directory(params_, memory); }

  /// Stores each row's maximum and sum over the warp's keys.
  TH_DEVICE void finalize(const State& state, const StreamKMemory<config>& memory, u32 warp) const {
    const u32 lane = warp::lane();
    TH_UNROLL
    for (int group = 0; group < config.rows / 8; ++group) {
      TH_UNROLL
      for (int side = 0; side < 2; ++side) {
        const float sum = Chunks::over_keys(state.running_sum[group][side], [](float a, float b) { return a + b; });
        if (lane / 4 == 0) {
          memory.sums(warp, static_cast<u32>(group) * 8 + lane * 2 + static_cast<u32>(side))
              .store(0, {state.running_max[group][side], sum});
        }
      }
    }
  }

  /// Stores the warp's output of eight rows.
  TH_DEVICE void store_partials(const State& state, const StreamKMemory<config>& memory, u32 warp,
                                u32 first_row) const {
    TH_UNROLL
    for (int group = 0; group < config.rows / 8; ++group) {
      if (static_cast<u32>(group) * 8 == first_row) {
        TH_UNROLL
        for (int step = 0; step < config.value_dim / 16; ++step) {
          TH_UNROLL
          for (int i = 0; i < 4; ++i) {
            memory.merged(warp, warp::lane() % 4 * 2 + static_cast<u32>(i % 2))
                .store(Chunks::column(step) + static_cast<u32>(i / 2) * Chunks::column_distance,
                       state.output[step][group][i]);
          }
        }
      }
    }
  }

  /// Finishes a row that the block has whole, and stores the part of any other.
  TH_DEVICE void combine_row(const StreamKItem& item, const StreamKMemory<config>& memory, const ItemShare& share,
                             u32 head, u32 row) const {
    const u32 lane = warp::lane();
    Row merged = merged_warps(memory, head, row);
    if (share.is_whole) {
      finish(item, head, row, merged);
      return;
    }
    const i64 at = static_cast<i64>(share.place) * config.tile_rows() + head * config.rows + row;
    const Global<float> to = Global<float>{params_.parts}.offset(at * config.value_dim + lane * owned);
    TH_UNROLL
    for (int i = 0; i < owned; i += wide) {
      to.offset(i).template as<Vector<float, wide>>().store(0, piece_of<wide>(merged.output, i));
    }
    if (lane == 0) {
      Global<Vector<float, 2>>{params_.part_sums}.store(at, {merged.max, merged.sum});
    }
  }

  /// Records, for the second launch, an item that other blocks continue.
  TH_DEVICE void record_split_item(const StreamKItem& item, u32 parts) const {
    const u32 block = launch::block_index().x;
    if (block == 0) {
      Global<u32>{params_.block_count}.store(0, launch::block_count().x);
    }
    const QueryTile& tile = item.tile;
    const Global<Vector<i32, 4>> to{params_.split_items};
    to.store(block * 2, {static_cast<i32>(parts), tile.batch, tile.kv_head, tile.first_query});
    to.store(block * 2 + 1, {tile.queries, tile.keys, tile.first_row, static_cast<i32>(tile.rows)});
  }

  /// Sends the row to the block of the cluster that merges it.
  TH_DEVICE void send_row(const StreamKMemory<config>& memory, const PartPlace& to, u32 head, u32 row) const {
    const Row merged = merged_warps(memory, head, row);
    const u32 lane = warp::lane();
    const Remote<Vector<float, wide>> pieces =
        to.output.offset(lane * static_cast<u32>(owned)).template as<Vector<float, wide>>();
    TH_UNROLL
    for (int i = 0; i < owned; i += wide) {
      cluster::store_async(pieces.offset(static_cast<u32>(i / wide)), piece_of<wide>(merged.output, i), to.full);
    }
    if (lane == 0) {
      cluster::store_async(to.max_and_sum, Vector<float, 2>{{merged.max, merged.sum}}, to.full);
    }
  }

  /// Merges a row whose parts the blocks of the cluster have sent.
  TH_DEVICE void merge_cluster_row(const StreamKItem& item, const StreamKMemory<config>& memory, const RowParts& parts,
                                   u32 head, u32 row) const {
    Row merged = merged_parts<owned, static_cast<u32>(config.cluster)>(
        parts.count, [&](u32 part) { return memory.part_sums(parts.index(part)).load(); },
        [&](u32 part) { return memory.part(parts.index(part)).offset(warp::lane() * static_cast<u32>(owned)); });
    finish(item, head, row, merged);
  }

 private:
  /// A row of a head, merged from the block's warps.
  TH_DEVICE static Row merged_warps(const StreamKMemory<config>& memory, u32 head, u32 row) {
    const u32 first_warp = head * Warps::warps_per_head;
    return merged_parts<owned, Warps::warps_per_head>(
        Warps::warps_per_head, [&](u32 warp) { return memory.sums(first_warp + warp, row).load(); },
        [&](u32 warp) {
          return memory.merged(first_warp + warp, row % StreamKConfig::merged_rows).offset(warp::lane() * owned);
        });
  }

  TH_DEVICE void finish(const StreamKItem& item, u32 head, u32 row, Row& merged) const {
    finish_row<config, Element, KeyElement, logits, QueryElement>(params_, item.tile.of_head(head), row, merged);
  }

  const StreamKParams& params_;
};

template <StreamKConfig config, typename Element, typename KeyElement, Logits logits, typename QueryElement = Element>
TH_KERNEL(config.threads(), 1)
stream_k(TH_GRID_CONSTANT const StreamKParams params) {
  pipeline::attention::stream_k<config>(StreamKAttention<config, Element, KeyElement, logits, QueryElement>(params));
}

}  // namespace thresher::strategies::attention
