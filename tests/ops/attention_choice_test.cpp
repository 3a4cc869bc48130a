#include "ops/attention_choice.hpp"

#include <gtest/gtest.h>

#include "thresher/error.hpp"

namespace thresher::ops {
namespace {

constexpr int multiprocessors = 132;

TEST(AttentionChoice, SplitsTheKeysOfProblemsTooSmallToFillTheMachine) {
  const AttentionChoice origin =
      choose_attention({.heads = 8, .kv_heads = 8, .queries = 512, .keys = 512}, {}, multiprocessors);
  EXPECT_EQ(origin.strategy, "split");
  EXPECT_EQ(origin.split.cluster, 2);
  EXPECT_EQ(choose_attention({.heads = 16, .kv_heads = 8, .queries = 512, .keys = 512}, {}, multiprocessors).strategy,
            "pipelined");
  EXPECT_EQ(choose_attention({.heads = 1, .queries = 64, .keys = 4096}, {}, multiprocessors).strategy, "pipelined");
}

TEST(AttentionChoice, TakesKnobsAndNamesTheOnesItLacks) {
  const AttentionProblem problem{.queries = 4096, .keys = 4096, .head_dim = 128};
  EXPECT_EQ(choose_attention(problem, {.strategy = "pipelined", .knobs = {{"stages", "3"}, {"math_warpgroups", "1"}}},
                             multiprocessors)
                .stream.stages,
            3);
  const auto refusal = [&](const AttentionOptions& options) -> std::string {
    try {
      (void)choose_attention(problem, options, multiprocessors);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(refusal({.strategy = "pipelined", .knobs = {{"speed", "11"}}}),
            "the attention strategy pipelined has no knob speed");
  EXPECT_EQ(refusal({.strategy = "pipelined", .knobs = {{"cluster", "3"}}}),
            "the attention knob cluster is 3, expected one of 1, 2");
  EXPECT_EQ(refusal({.strategy = "split"}),
            "the attention strategy split takes at most 2048 keys, problem.keys is 4096");
  EXPECT_EQ(refusal({.strategy = "simple", .knobs = {{"stages", "2"}}}),
            "the attention strategy simple has no knob stages");
}

TEST(AttentionChoice, KnobsThatNeedTooMuchSharedMemoryAreRefused) {
  EXPECT_THROW(
      (void)choose_attention({.queries = 4096, .keys = 4096, .head_dim = 128},
                             {.strategy = "pipelined", .knobs = {{"keys", "192"}, {"stages", "4"}}}, multiprocessors),
      Error);
}

}  // namespace
}  // namespace thresher::ops
