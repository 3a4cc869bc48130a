// How persistent clusters share the query tiles of all heads: every tile once, and evenly under a causal mask.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "strategies/attention/device/work.hpp"

namespace thresher::strategies::attention {
namespace {

Params params_of(i32 batch, i32 heads, i32 queries, i32 rows, Order order) {
  Params params{};
  params.batch = batch;
  params.heads = heads;
  params.group = 1;
  params.queries = queries;
  params.keys = queries;
  params.window_left = 1 << 29;
  params.query_tiles = (queries + rows - 1) / rows;
  params.missing_rows = params.query_tiles * rows - queries;
  params.order = order;
  return params;
}

/// What each cluster takes, in its order.
std::vector<std::vector<Work>> dealt(const Params& params, i32 rows, i32 clusters) {
  const Pieces pieces = pieces_of(params, clusters);
  std::vector<std::vector<Work>> all(static_cast<std::size_t>(clusters));
  for (i32 own = 0; own < clusters; ++own) {
    for (i32 turn = 0;; ++turn) {
      const i32 piece = piece_at(params, pieces, clusters, own, turn);
      if (piece >= pieces.count()) {
        break;
      }
      all[static_cast<std::size_t>(own)].push_back(work_at(params, pieces, piece, rows));
    }
  }
  return all;
}

TEST(AttentionWork, EveryTileIsTakenOnceInEveryOrder) {
  constexpr i32 rows = 64;
  for (const Order order : {Order::by_head, Order::paired_then_longest_first, Order::short_tiles_last}) {
    for (const i32 queries : {1, 63, 64, 65, 200, 320, 1000}) {
      for (const i32 clusters : {1, 2, 3, 7, 20}) {
        const Params params = params_of(2, 5, queries, rows, order);
        std::map<std::pair<i32, i32>, int> taken;
        for (const auto& own : dealt(params, rows, clusters)) {
          for (const Work& work : own) {
            if (work.first_row < queries) {
              ++taken[{work.sequence.batch * 5 + work.sequence.head, work.first_row}];
            }
          }
        }
        EXPECT_EQ(taken.size(), static_cast<std::size_t>(10 * params.query_tiles));
        for (const auto& [at, times] : taken) {
          EXPECT_EQ(times, 1) << "head " << at.first << ", row " << at.second;
          EXPECT_GT(at.second + rows, 0);
          EXPECT_EQ((at.second + params.missing_rows) % rows, 0);
        }
      }
    }
  }
}

/// Blocks of 128 keys that the busiest of 132 clusters passes over, against the mean.
double imbalance(i32 heads, i32 queries, i32 rows, Order order) {
  const Params params = params_of(1, heads, queries, rows, order);
  double most = 0;
  double sum = 0;
  for (const auto& own : dealt(params, rows, 132)) {
    double blocks = 0;
    for (const Work& work : own) {
      blocks += work.first_row < queries ? (least(work.first_row + rows, queries) + 127) / 128 : 0;
    }
    most = std::max(most, blocks);
    sum += blocks;
  }
  return most * 132 / sum;
}

TEST(AttentionWork, CausalTilesAreSharedEvenly) {
  EXPECT_LT(imbalance(128, 4096, 192, Order::paired_then_longest_first), 1.015);
  EXPECT_LT(imbalance(64, 4096, 128, Order::paired_then_longest_first), 1.02);
  EXPECT_LT(imbalance(16, 16384, 128, Order::paired_then_longest_first), 1.02);
}

/// Tiles of a sequence in pages, tile by tile: the more keys the later. 32 heads of 32 tiles over as many keys.
TEST(AttentionWork, TilesInPagesAreSharedEvenly) {
  constexpr i32 tiles = 32;
  Params params = params_of(1, 32, tiles * 128, 128, Order::by_tile);
  std::set<std::pair<i32, i32>> taken;
  int max_keys = 0;
  for (i32 own = 0; own < 132; ++own) {
    int keys = 0;
    for (i32 turn = 0; piece_at(params, Pieces{}, 132, own, turn) < params.heads * tiles; ++turn) {
      const HeadTile at = head_tile(params, Pieces{}, piece_at(params, Pieces{}, 132, own, turn));
      keys += at.tile + 1;
      EXPECT_TRUE(taken.emplace(at.head, at.tile).second);
    }
    max_keys = std::max(max_keys, keys);
  }
  EXPECT_EQ(taken.size(), static_cast<std::size_t>(params.heads * tiles));
  EXPECT_LT(max_keys * 132, 1.1 * params.heads * tiles * (tiles + 1) / 2);
}

}  // namespace
}  // namespace thresher::strategies::attention
