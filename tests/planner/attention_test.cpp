#include <gtest/gtest.h>

#include "planner/measured.hpp"
#include "planner/rank.hpp"

namespace thresher::planner {
namespace {

AttentionProblem problem_of(std::int64_t batch, std::int64_t heads, std::int64_t length, std::int64_t dim) {
  AttentionProblem problem;
  problem.batch = batch;
  problem.heads = problem.kv_heads = heads;
  problem.queries = problem.keys = length;
  problem.head_dim = dim;
  return problem;
}

const AttentionConfig split{.query_rows = 64, .key_step = 128, .stages = 2, .math_warpgroups = 1, .split_keys = 2};
const AttentionConfig large{.query_rows = 128,
                            .key_step = 128,
                            .stages = 2,
                            .math_warpgroups = 2,
                            .multicast = 2,
                            .loader_registers = 40,
                            .math_registers = 232,
                            .queries_in_registers = true,
                            .persistent = true};

// measurements/attention_h200_2026-11-21.json
TEST(AttentionPlan, ItsKernelsArePredictedWithinATenth) {
  const DeviceSpec& h200 = device_spec("H200");
  const AttentionProblem origin = problem_of(1, 8, 512, 64);
  EXPECT_NEAR(predict(origin, split, h200).us(), 4.12, 0.41);
  AttentionConfig dependent = split;
  dependent.dependent_launch = true;
  EXPECT_NEAR(predict(origin, dependent, h200).us(), 3.53, 0.35);
  AttentionConfig alone = large;
  alone.multicast = 1;
  AttentionProblem problem = problem_of(4, 16, 4096, 128);
  EXPECT_NEAR(predict(problem, alone, h200).us(), 863, 86);
  problem.causal = true;
  EXPECT_NEAR(predict(problem, alone, h200).us(), 447, 45);
}

TEST(AttentionPlan, TheDefaultsAreNearWhatTheyWereFittedTo) {
  AttentionConfig pipelined = large;
  pipelined.multicast = 1;
  for (const testing::MeasuredAttention& row : testing::attention) {
    AttentionProblem problem = problem_of(row.batch, row.heads, row.length, row.head_dim);
    problem.causal = row.causal;
    pipelined.math_warpgroups = row.head_dim == 64 ? 3 : 2;
    pipelined.query_rows = 64 * pipelined.math_warpgroups;
    const double us = predict(problem, row.split ? split : pipelined, device_spec("H200")).us();
    EXPECT_NEAR(us / row.burst_us, 1, 0.15) << row.length << " of " << row.head_dim;
  }
}

TEST(AttentionPlan, TheOriginsProblemWantsSmallTilesAndSplitKeys) {
  const AttentionProblem origin = problem_of(1, 8, 512, 64);
  const DeviceSpec& h200 = device_spec("H200");
  const AttentionRanking ranking = rank(origin, attention_candidates(origin, h200), h200);
  ASSERT_FALSE(ranking.choices.empty());
  EXPECT_EQ(ranking.choices.front().config.query_rows, 64);
  EXPECT_EQ(ranking.choices.front().config.split_keys, 2);
  // Clusters of 4 take two rounds: at most 30 of them are resident.
  AttentionConfig four = split;
  four.split_keys = 4;
  EXPECT_GT(predict(origin, four, h200).us(), predict(origin, split, h200).us());
}

TEST(AttentionPlan, LongSequencesAreBoundByProductsAndCausalHalvesThem) {
  const DeviceSpec& h200 = device_spec("H200");
  AttentionProblem problem = problem_of(1, 16, 16384, 128);
  const Prediction full = predict(problem, large, h200);
  EXPECT_EQ(full.bound, Bound::matrix);
  problem.causal = true;
  EXPECT_NEAR(predict(problem, large, h200).us() / full.us(), 0.5, 0.06);
  problem.causal = false;
  problem.window_left = 1024;
  problem.window_right = 0;
  EXPECT_LT(predict(problem, large, h200).us(), 0.2 * full.us());
}

TEST(AttentionPlan, ImpossibleTilesAreRefusedWithTheNumber) {
  const AttentionProblem problem = problem_of(1, 8, 4096, 128);
  const DeviceSpec& h200 = device_spec("H200");
  AttentionConfig config = large;
  config.stages = 4;
  ASSERT_EQ(feasible(problem, config, h200).obstacles.size(), 1U);
  EXPECT_EQ(feasible(problem, config, h200).obstacles[0],
            "shared memory: 296000 bytes a block (4 stages of 65536) are over the limit of 232448 (227 KiB)");
  config = large;
  config.query_rows = 96;
  EXPECT_EQ(feasible(problem, config, h200).obstacles[0],
            "matrix shape: 96 query rows are not a multiple of 128 (64 for each of 2 math warpgroups)");
  EXPECT_TRUE(feasible(problem, large, h200).feasible());
}

}  // namespace
}  // namespace thresher::planner
