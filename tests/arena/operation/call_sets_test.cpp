#include "arena/operation/call_sets.hpp"

#include <gtest/gtest.h>

#include <set>

#include "arena/gemm/task.hpp"
#include "arena/operation/operation.hpp"
#include "arena/planted.hpp"

namespace thresher::arena {
namespace {

Problem small_problem(Format format = Format::nvfp4) {
  return problem_of(DualGemmProblem{48, 96, 64, format, Format::nvfp4, Format::fp16, {}});
}

std::string bytes_of_row(const HostTensor& tensor, std::int64_t row) {
  const std::size_t row_bytes = tensor.values.size() / static_cast<std::size_t>(tensor.rows());
  return {reinterpret_cast<const char*>(tensor.values.data()) + static_cast<std::size_t>(row) * row_bytes, row_bytes};
}

TEST(CallSets, EveryCallHasItsOwnDataAndSharesItsGroupsWeights) {
  FakeRig rig;
  const Problem problem = small_problem();
  const FreshInputs fresh(problem, Distribution::contest, 7);
  const CallPlan plan = plan_calls(problem, fresh.inputs_of_group(0), {&rig, &rig}, 20, false);
  ASSERT_GE(plan.groups, 3U);
  EXPECT_GE(plan.cold, 20U);
  EXPECT_EQ(plan.cold % plan.groups, 0U);
  EXPECT_GE(plan.warm, 21U) << "one more warms up";
  std::vector<std::vector<HostTensor>> groups{fresh.inputs_of_group(0)};
  fresh.add_groups(groups, plan.groups);
  EXPECT_NE(groups[0][1].values, groups[1][1].values);
  const std::vector<DeviceSet> sets = make_call_sets(rig.memory(), problem, plan, groups);
  ASSERT_EQ(sets.size(), plan.called() + plan.trusted);
  std::set<const void*> activations;
  std::set<const void*> outputs;
  std::set<const void*> weights;
  for (std::size_t set = 0; set < sets.size(); ++set) {
    activations.insert(sets[set].tensor("a").data);
    outputs.insert(sets[set].tensor("c").data);
    weights.insert(sets[set].tensor("b1").data);
    EXPECT_EQ(sets[set].tensor("b1").data, sets[plan.group_of(set)].tensor("b1").data);
    EXPECT_EQ(sets[set].tensor("b1").scales.data, sets[plan.group_of(set)].tensor("b1").scales.data);
  }
  EXPECT_EQ(activations.size(), sets.size());
  EXPECT_EQ(outputs.size(), sets.size());
  EXPECT_EQ(weights.size(), plan.groups);
}

TEST(CallSets, AWarmProblemHasOneGroup) {
  FakeRig rig;
  const Problem problem = small_problem();
  const FreshInputs fresh(problem, Distribution::contest, 7);
  const CallPlan plan = plan_calls(problem, fresh.inputs_of_group(0), {&rig, &rig}, 5, true);
  EXPECT_EQ(plan.groups, 1U);
  EXPECT_EQ(plan.warm, 6U);
}

TEST(CallSets, NoRowOfActivationsComesTwice) {
  for (const Format format : {Format::nvfp4, Format::fp16}) {
    const Problem problem = small_problem(format);
    const FreshInputs fresh(problem, Distribution::contest, 7);
    std::set<std::string> rows;
    constexpr std::uint64_t calls = 200;
    for (std::uint64_t call = 0; call < calls; ++call) {
      const std::vector<HostTensor> made = fresh.activations(call);
      ASSERT_EQ(made.size(), 1U) << "no weights";
      for (std::int64_t row = 0; row < made[0].rows(); ++row) {
        rows.insert(bytes_of_row(made[0], row));
      }
    }
    EXPECT_EQ(rows.size(), calls * 48);
  }
}

TEST(CallSets, NoRowOfWeightsComesTwice) {
  constexpr std::size_t many = 40;
  for (const Distribution distribution : {Distribution::contest, Distribution::integers}) {
    const Problem problem = small_problem();
    const FreshInputs fresh(problem, distribution, 7);
    std::vector<std::vector<HostTensor>> groups{fresh.inputs_of_group(0)};
    fresh.add_groups(groups, many);
    ASSERT_EQ(groups.size(), many);
    std::set<std::string> rows;
    std::size_t made = 0;
    for (const std::vector<HostTensor>& group : groups) {
      for (const HostTensor& input : group) {
        for (std::int64_t row = 0; input.is_weight && row < input.rows(); ++row, ++made) {
          rows.insert(bytes_of_row(input, row));
        }
      }
    }
    EXPECT_EQ(made, many * 2 * 96);
    EXPECT_EQ(rows.size(), made) << name(distribution);
  }
}

TEST(CallSets, FreshIntegersStayExact) {
  const Problem problem = small_problem();
  const FreshInputs fresh(problem, Distribution::integers, 7);
  const std::vector<HostTensor> one = fresh.activations(1);
  const std::vector<HostTensor> other = fresh.activations(2);
  EXPECT_NE(one[0].values, other[0].values);
  std::vector<HostTensor> inputs = fresh.inputs_of_group(0);
  inputs[0] = one[0];
  std::vector<HostTensor> outputs = problem.operation().outputs(problem);
  KernelCall call{dual_gemm(problem), inputs[0].view(), inputs[1].view(), inputs[2].view(), outputs[0].view()};
  honest_kernel(call);
  EXPECT_TRUE(problem.operation().judge(problem, Distribution::integers, inputs, {}, 3)->judge(outputs).correct);
}

class InspectorTest : public ::testing::TestWithParam<Distribution> {
 protected:
  InspectorTest() {
    KernelCall call{dual_gemm(problem_), inputs_[0].view(), inputs_[1].view(), inputs_[2].view(), outputs_[0].view()};
    honest_kernel(call);
    for (const HostTensor& input : inputs_) {
      call_.push_back(&input);
    }
  }

  /// The first fault that so many looks find.
  std::string look(int times, std::uint8_t poison = 0xFF) const {
    Random random(3);
    for (int i = 0; i < times; ++i) {
      Look look = inspector_->choose(random);
      for (RowPart& part : look.parts) {
        const auto* const first =
            &outputs_[part.output].values[static_cast<std::size_t>(2 * (part.row * 96 + part.first_column))];
        part.bytes.assign(first, first + 2 * part.columns);
      }
      if (std::string fault = inspector_->fault_in(look, call_, poison); !fault.empty()) {
        return fault;
      }
    }
    return {};
  }

  Problem problem_ = small_problem();
  std::vector<HostTensor> inputs_ = problem_.operation().inputs(problem_, GetParam(), 9);
  std::vector<HostTensor> outputs_ = problem_.operation().outputs(problem_);
  InputsOfCall call_;
  std::unique_ptr<Inspector> inspector_ = problem_.operation().inspector(
      problem_, GetParam(), problem_.operation().inputs(problem_, GetParam(), 10), {}, 4);
};

TEST_P(InspectorTest, AnHonestOutputHolds) {
  EXPECT_EQ(look(100), "");
  EXPECT_EQ(inspector_->fault_against(outputs_, outputs_), "");
}

TEST_P(InspectorTest, OneWrongElementAnywhereIsFoundInAWholeOutput) {
  const std::vector<HostTensor> trusted = outputs_;
  for (const std::size_t element : {std::size_t{0}, std::size_t{2000}, std::size_t{48 * 96 - 1}}) {
    outputs_ = trusted;
    outputs_[0].values[2 * element + 1] = 0x6F;  // about 7000
    const std::string fault = inspector_->fault_against(outputs_, trusted);
    EXPECT_NE(fault.find("c[" + std::to_string(element / 96) + ", " + std::to_string(element % 96) + "] is "),
              std::string::npos)
        << fault;
  }
}

TEST_P(InspectorTest, WhatWasNotWrittenIsJudgedFirst) {
  for (std::size_t row = 0; row < 48; ++row) {
    std::fill_n(outputs_[0].values.begin() + static_cast<std::ptrdiff_t>(2 * (96 * row + 40)), 2, std::uint8_t{0x5A});
  }
  EXPECT_NE(look(20, 0x5A).find(", 40] was not written, the definition gives "), std::string::npos) << look(20, 0x5A);
}

INSTANTIATE_TEST_SUITE_P(Distributions, InspectorTest,
                         ::testing::Values(Distribution::contest, Distribution::full_range, Distribution::normal,
                                           Distribution::integers),
                         [](const auto& tested) { return std::string(name(tested.param)); });

}  // namespace
}  // namespace thresher::arena
