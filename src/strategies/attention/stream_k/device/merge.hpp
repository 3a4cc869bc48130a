#pragma once
/// The second launch of `stream_k` merges the items that several blocks share from their parts.
#include "strategies/attention/stream_k/device/rows.hpp"

namespace thresher::strategies::attention {

/// Warps of a block; each takes a row at a time.
inline constexpr int merging_warps = 4;

/// Row `tile_row` of the item that `block` began, the rows of its heads one after the other.
template <StreamKConfig config>
struct SplitRow {
  static constexpr int owned = config.value_dim / 32;
  // More would need registers beyond those that the first launch leaves to the blocks that wait beside it.
  static constexpr u32 parts_at_once = owned > 4 ? 4 : config.key_bytes == 1 ? 8 : 16;
  using Pieces = float[parts_at_once][owned];

  const StreamKParams& params;
  const u32& block;
  const u32& tile_row;
  const u32& parts;
  const u32& lane;

  TH_DEVICE i64 place(u32 part) const {
    return (2 * static_cast<i64>(block + part) + (part == 0 ? 1 : 0)) * config.tile_rows() + tile_row;
  }
  TH_DEVICE Vector<float, 2> max_and_sum(u32 part) const {
    return part < parts ? Global<Vector<float, 2>>{params.part_sums}.load(place(part))
                        : Vector<float, 2>{{-largest_float, 0.0F}};
  }
  /// This lane's columns of the parts from `first` on.
  TH_DEVICE void load(Pieces& pieces, u32 first) const {
    TH_UNROLL
    for (u32 i = 0; i < parts_at_once; ++i) {
      if (first + i < parts) {
        load_floats(pieces[i], Global<float>{params.parts}.offset(place(first + i) * config.value_dim + lane * owned));
      }
    }
  }
  /// Lane l has the weight of part `round` + l.
  TH_DEVICE void add(RowState<owned>& row, const Pieces& pieces, u32 first, u32 round, float weights) const {
    TH_UNROLL
    for (u32 i = 0; i < parts_at_once; ++i) {
      const float weight = warp::shuffle(weights, first + i - round);
      TH_UNROLL
      for (int j = 0; j < owned; ++j) {
        row.output[j] = first + i < parts ? math::fma(weight, pieces[i][j], row.output[j]) : row.output[j];
      }
    }
  }
  /// The largest maximum of all parts; `own` is that of part `lane`.
  TH_DEVICE float largest_max(float own) const {
    TH_NO_UNROLL
    for (u32 part = 32 + lane; part < parts; part += 32) {
      own = math::max(own, max_and_sum(part).at[0]);
    }
    return warp::reduce(own, [](float a, float b) { return math::max(a, b); });
  }
};

/// Merges a row from its parts in the order of their blocks.
template <StreamKConfig config, typename Element, typename KeyElement, Logits logits, typename QueryElement>
TH_DEVICE void merge_row(const StreamKParams& params, u32 block, u32 tile_row) {
  using Split = SplitRow<config>;
  const u32 lane = warp::lane();
  const u32 row = tile_row % config.rows;
  const u32 blocks = Global<u32>{params.block_count}.load();
  const Global<Vector<i32, 4>> from{params.split_items};
  const Vector<i32, 4> head = from.load(block * 2);
  const Vector<i32, 4> rest = from.load(block * 2 + 1);
  const QueryTile first_tile{
      head.at[1], head.at[2], head.at[3], rest.at[0], rest.at[1], rest.at[2], static_cast<u32>(rest.at[3])};
  const QueryTile tile = first_tile.of_head(tile_row / config.rows);
  const u32 parts = block < blocks ? static_cast<u32>(head.at[0]) : 0;
  if (parts == 0 || row >= tile.rows) {
    return;
  }
  const Split split{params, block, tile_row, parts, lane};
  typename Split::Pieces pieces;
  Vector<float, 2> own = split.max_and_sum(lane);
  split.load(pieces, 0);
  RowState<Split::owned> merged{};
  merged.max = split.largest_max(own.at[0]);
  TH_NO_UNROLL
  for (u32 round = 0; round < parts; round += 32) {
    own = round == 0 ? own : split.max_and_sum(round + lane);
    const float weights = math::exp2_approx(own.at[0] - merged.max);
    merged.sum += warp::reduce(own.at[1] * weights, [](float a, float b) { return a + b; });
    TH_NO_UNROLL
    for (u32 first = round; first < parts && first < round + 32; first += Split::parts_at_once) {
      if (first > 0) {
        split.load(pieces, first);
      }
      split.add(merged, pieces, first, round, weights);
    }
  }
  finish_row<config, Element, KeyElement, logits, QueryElement>(params, tile, row, merged);
}

/// Merges every row that the first launch left in parts. The grid has any number of blocks of merging_warps warps.
template <StreamKConfig config, typename Element, typename KeyElement, Logits logits, typename QueryElement = Element>
TH_KERNEL(merging_warps * 32, 1)
merge_parts(TH_GRID_CONSTANT const StreamKParams params) {
  const u32 first = launch::block_index().x * merging_warps + warp::index();
  launch::release_dependents();
  launch::wait_for_earlier_grids();
  const u32 rows = static_cast<u32>(params.max_blocks * config.tile_rows());
  TH_NO_UNROLL
  for (u32 index = first; index < rows; index += launch::block_count().x * merging_warps) {
    merge_row<config, Element, KeyElement, logits, QueryElement>(params, index / config.tile_rows(),
                                                                 index % config.tile_rows());
  }
}

}  // namespace thresher::strategies::attention
