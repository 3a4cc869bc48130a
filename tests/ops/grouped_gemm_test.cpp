// The grouped products' public API end to end on the CPU: plan, pack, run, status.
#include <gtest/gtest.h>

#include <algorithm>
#include <unordered_set>

#include "reference/grouped_judgement.hpp"
#include "support/grouped_case.hpp"
#include "thresher/thresher.hpp"

namespace thresher {
namespace {

using test::GroupedCase;
using test::GroupedForm;

GroupedProblem small() {
  return {.experts = 3,
          .rows = 20,
          .n = 16,
          .k = 32,
          .a = Format::bf16,
          .b = Format::bf16,
          .out = Format::bf16,
          .activation = Activation{}};
}

void expect_right(GroupedCase& of) {
  const reference::GroupedCall call = reference::grouped_call(of.problem(), of.weights(), of.tensors());
  const reference::Verdict verdict = judge_grouped(call, reference::Rule::general, reference::whole(call));
  EXPECT_TRUE(verdict.passed) << verdict.explain();
  EXPECT_GT(verdict.elements, 0);
  for (std::size_t row = 0; row < call.owned.tokens.size(); ++row) {
    EXPECT_EQ(of.is_untouched(static_cast<std::int64_t>(row)), call.owned.tokens[row] < 0) << row;
  }
}

TEST(GroupedGemmApi, EveryStrategyRunsFromRawAndFromPackedWeights) {
  const Device cpu = Device::cpu();
  ASSERT_FALSE(grouped_gemm_strategies(cpu).empty());
  for (const std::string& strategy : grouped_gemm_strategies(cpu)) {
    for (const bool is_packed : {false, true}) {
      GroupedCase of(small(), {.groups = {1, 8, 8, 19}, .order = GateUpOrder::interleaved});
      const GroupedOptions options{.strategy = strategy};
      const GroupedGemm gemm = is_packed ? plan(cpu, of.problem(), pack(cpu, of.weights()), options)
                                         : plan(cpu, of.problem(), of.weights(), options);
      EXPECT_EQ(gemm.strategy(), strategy);
      EXPECT_EQ(gemm.problem(), of.problem());
      const Workspace workspace(cpu, gemm.workspace_bytes());
      gemm.run({}, of.tensors(), workspace.data());
      expect_right(of);
      EXPECT_EQ(gemm.status({}, workspace.data()), GroupedStatus{});
    }
  }
}

TEST(GroupedGemmApi, StatusSaysWhatTheLastRunFound) {
  const Device cpu = Device::cpu();
  GroupedCase of(small(), {.groups = {0, 25, 10, 20}});
  const GroupedGemm gemm = plan(cpu, of.problem(), of.weights());
  const Workspace workspace(cpu, gemm.workspace_bytes());
  gemm.run({}, of.tensors(), workspace.data());
  expect_right(of);
  const GroupedStatus status = gemm.status({}, workspace.data());
  EXPECT_EQ(status.flags, GroupedStatus::decreasing | GroupedStatus::beyond);
  EXPECT_EQ(status.explain(), "offsets decrease; an offset or a count exceeds the rows there are");
  of.groups() = {0, 5, 10, 20};
  gemm.run({}, of.tensors(), workspace.data());
  EXPECT_EQ(gemm.status({}, workspace.data()).explain(), "offsets, counts and ids make sense");
  EXPECT_THROW((void)gemm.status({}, nullptr), Error);
}

/// Other counts in every call, fewer rows than were planned, none at all.
TEST(GroupedGemmApi, OnePlanServesAllCountsAndFewerRows) {
  const Device cpu = Device::cpu();
  GroupedCase of(small(), {.groups = {0, 5, 10, 20}});
  const GroupedGemm gemm = plan(cpu, of.problem(), of.weights());
  const Workspace workspace(cpu, gemm.workspace_bytes());
  for (const std::vector<std::int32_t>& offsets :
       {std::vector<std::int32_t>{0, 20, 20, 20}, {0, 0, 0, 20}, {3, 4, 5, 6}}) {
    of.c().poison();
    of.groups() = offsets;
    gemm.run({}, of.tensors(), workspace.data());
    expect_right(of);
  }
  of.c().poison();
  of.groups() = {0, 2, 3, 9};
  GroupedTensors fewer = of.tensors();
  fewer.a.shape[0] = fewer.c.shape[0] = 7;
  gemm.run({}, fewer, workspace.data());
  EXPECT_EQ(gemm.status({}, workspace.data()).flags, GroupedStatus::beyond);
  EXPECT_FALSE(of.is_untouched(6));
  EXPECT_TRUE(of.is_untouched(7));
  fewer.a.shape[0] = fewer.c.shape[0] = 0;
  of.c().poison();
  gemm.run({}, fewer, workspace.data());
  EXPECT_TRUE(of.is_untouched(0));
}

TEST(GroupedGemmApi, RefusesWhatItCannotRun) {
  const Device cpu = Device::cpu();
  GroupedCase of(small(), {.groups = {0, 5, 10, 20}});
  try {
    (void)plan(cpu, of.problem(), of.weights(), {.strategy = "triton"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "strategy triton is not known: use one of by_expert");
  }
  EXPECT_THROW((void)pack(cpu, of.weights(), {.numerics = Numerics::fast}), Error);
  EXPECT_THROW((void)plan(cpu, of.problem(), of.weights(), {.knobs = Knobs::parse("numerics=fast")}), Error);
  GroupedProblem other = of.problem();
  other.experts = 4;
  EXPECT_THROW((void)plan(cpu, other, pack(cpu, of.weights())), Error);
  const GroupedGemm gemm = plan(cpu, of.problem(), of.weights());
  EXPECT_THROW(gemm.run({}, of.tensors(), nullptr), Error);
  EXPECT_TRUE(of.is_untouched(0));
}

TEST(GroupedGemmApi, PackedWeightsSayWhatTheyAre) {
  const Device cpu = Device::cpu();
  GroupedProblem problem = small();
  problem.bias = true;
  GroupedCase of(problem, {.groups = {0, 5, 10, 20}, .order = GateUpOrder::gate_first});
  const PackedGroupedWeights weights = pack(cpu, of.weights());
  EXPECT_EQ(weights.experts(), 3);
  EXPECT_EQ(weights.n(), 16);
  EXPECT_EQ(weights.k(), 32);
  EXPECT_EQ(weights.matrices(), 2);
  EXPECT_EQ(weights.format(), Format::bf16);
  EXPECT_TRUE(weights.has_bias());
  EXPECT_EQ(weights.numerics(), Numerics::exact);
}

TEST(GroupedGemmApi, EqualProblemsHaveEqualHashes) {
  std::unordered_set<GroupedProblem> known;
  known.insert(small());
  EXPECT_TRUE(known.contains(small()));
  GroupedProblem other = small();
  other.activation.reset();
  EXPECT_FALSE(known.contains(other));
}

}  // namespace
}  // namespace thresher
