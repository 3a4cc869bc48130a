// How long attention is predicted to take, in terms of its tiles.
#include <gtest/gtest.h>

#include <utility>

#include "planner/choose.hpp"
#include "planner/measured.hpp"
#include "planner/predict.hpp"
#include "strategies/attention/registry.hpp"
#include "strategies/attention/tile_work.hpp"

namespace thresher::planner {
namespace {

using strategies::attention::TileWork;

AttentionProblem attention_of(std::int64_t batch, std::int64_t heads, std::int64_t length, std::int64_t dim) {
  AttentionProblem problem;
  problem.batch = batch;
  problem.heads = problem.kv_heads = heads;
  problem.queries = problem.keys = length;
  problem.head_dim = dim;
  return problem;
}

Prediction predicted(const AttentionProblem& problem, const TileWork& tile) {
  return predict({{tiled_kernel(problem, tile)}}, device_spec("H200"));
}

const TileWork split{.query_rows = 64, .split_keys = 2};
const TileWork pipelined{.pairs_tiles = true};

// measurements/attention_h200_2026-11-21.json
TEST(AttentionPlan, ItsKernelsArePredictedWithinATenth) {
  const AttentionProblem origin = attention_of(1, 8, 512, 64);
  EXPECT_NEAR(predicted(origin, split).us(), 4.12, 0.41);
  TileWork dependent = split;
  dependent.dependent_launch = true;
  EXPECT_NEAR(predicted(origin, dependent).us(), 3.53, 0.35);
  AttentionProblem problem = attention_of(4, 16, 4096, 128);
  EXPECT_NEAR(predicted(problem, pipelined).us(), 863, 86);
  problem.causal = true;
  EXPECT_NEAR(predicted(problem, pipelined).us(), 447, 45);
}

TEST(AttentionPlan, TheDefaultsAreNearWhatTheyWereFittedTo) {
  for (const testing::MeasuredAttention& row : testing::attention) {
    AttentionProblem problem = attention_of(row.batch, row.heads, row.length, row.head_dim);
    problem.causal = row.causal;
    TileWork tile = row.split ? split : pipelined;
    tile.query_rows = row.split ? 64 : row.head_dim == 64 ? 192 : 128;
    EXPECT_NEAR(predicted(problem, tile).us() / row.burst_us, 1, 0.15) << row.length << " of " << row.head_dim;
  }
}

// Clusters of 4 take two rounds: at most 30 of them are resident.
TEST(AttentionPlan, TheOriginsProblemSplitsItsKeysInTwo) {
  const AttentionProblem origin = attention_of(1, 8, 512, 64);
  TileWork four = split;
  four.split_keys = 4;
  EXPECT_GT(predicted(origin, four).us(), predicted(origin, split).us());
  EXPECT_GT(predicted(origin, pipelined).us(), predicted(origin, split).us());
}

TEST(AttentionPlan, LongSequencesAreBoundByProductsAndCausalHalvesThem) {
  AttentionProblem problem = attention_of(1, 16, 16384, 128);
  TileWork shared = pipelined;
  shared.multicast = 2;
  const Prediction full = predicted(problem, shared);
  EXPECT_EQ(full.bound, Bound::matrix);
  problem.causal = true;
  EXPECT_NEAR(predicted(problem, shared).us() / full.us(), 0.5, 0.06);
  problem.causal = false;
  problem.window_left = 1024;
  problem.window_right = 0;
  EXPECT_LT(predicted(problem, shared).us(), 0.2 * full.us());
}

// What is foretold of a batch is foretold of all its sequences and all their queries.
TEST(AttentionPlan, TheSequencesThatAreAssumedHaveAllQueries) {
  for (const auto& [batch, queries] :
       {std::pair(1, 7), std::pair(4, 4), std::pair(4, 12), std::pair(3, 10), std::pair(64, 65)}) {
    AttentionProblem problem = attention_of(batch, 8, 4096, 128);
    problem.variable_length = true;
    problem.queries = queries;
    std::int64_t sequences = 0;
    std::int64_t all = 0;
    for (const AttentionProblem& alike : strategies::attention::assumed_sequences(problem)) {
      sequences += alike.batch;
      all += alike.batch * alike.queries;
    }
    EXPECT_EQ(sequences, batch);
    EXPECT_EQ(all, queries);
  }
}

// Prefill over pages of 16 (measurements/attention_pages_h200_2026-11-29.txt.xz). Tiles of a sequence are not paired.
TEST(AttentionPlan, ChunksOverPagesArePredicted) {
  struct Row {
    std::int64_t batch, queries, keys;
    double us, with_fp8_queries_us;
  };
  for (const Row& row :
       {Row{1, 2048, 8192, 366.7, 325.5}, Row{1, 512, 4096, 56.4, 51.8}, Row{16, 128, 4096, 218.8, 196.1}}) {
    AttentionProblem problem = attention_of(row.batch, 32, row.keys, 128);
    problem.kv_heads = 8;
    problem.queries = row.batch * row.queries;
    problem.causal = problem.variable_length = true;
    problem.page_size = 16;
    problem.pages = row.batch * row.keys / problem.page_size;
    const auto expect_near = [&](double us) {
      const Choices choices = choose<AttentionProblem>(strategies::attention::registry().of(DeviceKind::cuda), problem,
                                                       {}, device_spec("H200"));
      EXPECT_NEAR(choices.ranked.front().prediction->us() / us, 1, 0.15) << row.queries << " over " << row.keys;
    };
    expect_near(row.us);
    problem.kv_format = problem.q_format = Format::fp8_e4m3;
    expect_near(row.with_fp8_queries_us);
  }
}

// A sequence with two queries among 63 with one is no reason to read every key by tiles of 128 queries.
TEST(AttentionPlan, DecodingWithOneMoreQueryIsPlannedAsDecoding) {
  for (const auto& [batch, keys] : {std::pair(64, 8192), std::pair(32, 32768), std::pair(8, 4096)}) {
    for (const int more : {0, 1, 3}) {
      AttentionProblem problem = attention_of(batch, 32, keys, 128);
      problem.kv_heads = 8;
      problem.causal = problem.variable_length = true;
      problem.queries = batch + more;
      problem.page_size = 64;
      problem.pages = problem.batch * problem.keys / problem.page_size;
      const Choices choices = choose<AttentionProblem>(strategies::attention::registry().of(DeviceKind::cuda), problem,
                                                       {}, device_spec("H200"));
      EXPECT_NE(choices.ranked.front().strategy, "pipelined") << batch << " sequences, " << more << " more queries";
    }
  }
}

}  // namespace
}  // namespace thresher::planner
