#include "reference/grouped_judgement.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "formats/elements.hpp"
#include "formats/numbers.hpp"
#include "reference/grouped_gemm.hpp"
#include "reference/output_format.hpp"
#include "support/grouped_case.hpp"

namespace thresher::reference {
namespace {

using test::GroupedCase;
using test::GroupedForm;

/// Problems of every layout with ragged and empty groups, rows of nobody, skipped and repeated ids.
struct Named {
  const char* name;
  GroupedProblem problem;
  GroupedForm form;
};

std::vector<Named> all_layouts(Format a, Format b) {
  const GroupedProblem base{.experts = 4,
                            .rows = 20,
                            .n = 24,
                            .k = 48,
                            .a = a,
                            .b = b,
                            .out = Format::bf16,
                            .activation = Activation{},
                            .bias = true,
                            .row_weights = true};
  GroupedProblem slots = base;
  slots.layout = RowLayout::slots;
  slots.rows = 7;
  GroupedProblem gathered = base;
  gathered.layout = RowLayout::gathered;
  gathered.tokens = 5;
  gathered.row_ids_divisor = 2;
  GroupedProblem plain = base;
  plain.activation.reset();
  return {{"packed", base, {.groups = {2, 5, 5, 18, 19}}},
          {"slots", slots, {.groups = {7, 0, 3, 1}}},
          {"gathered", gathered, {.groups = {0, 6, 6, 16, 20}, .row_ids = {9, 0, 0, 1, -1, 3, 10, 4, 5,  6,
                                                                           7, 8, 9, 2, 2,  2, 1,  0, 55, 8}}},
          {"plain", plain, {.groups = {0, 6, 6, 16, 20}}}};
}

TEST(GroupedJudgement, TheFastDefinitionIsTheDefinitionBitForBit) {
  for (const auto& [a, b] : {std::pair{Format::bf16, Format::bf16}, std::pair{Format::fp16, Format::nvfp4},
                             std::pair{Format::nvfp4, Format::nvfp4}}) {
    for (const Named& one : all_layouts(a, b)) {
      std::vector<std::optional<GateUpOrder>> orders{std::nullopt};
      if (one.problem.activation) {
        orders.insert(orders.end(), all_gate_up_orders.begin(), all_gate_up_orders.end());
      }
      for (const auto& order : orders) {
        SCOPED_TRACE(std::string(one.name) + " " + std::string(order ? name(*order) : "two tensors") + " " +
                     std::string(name(b)));
        GroupedForm form = one.form;
        form.order = order;
        GroupedCase of(one.problem, form);
        const GroupedOutputs definition = grouped_gemm(of.problem(), of.weights(), of.tensors());
        const GroupedCall call = grouped_call(of.problem(), of.weights(), of.tensors());
        std::int64_t seen = 0;
        for (const GroupRegion& part : whole(call)) {
          const Outputs fast = grouped_outputs(call, part, Accumulation::float64);
          const GroupRows& group = call.owned.groups[static_cast<std::size_t>(part.expert)];
          for (std::size_t i = 0; i < fast.value.size(); ++i) {
            const std::int64_t row = group.first + part.region.rows[i / part.region.columns.size()];
            const std::int64_t column = part.region.columns[i % part.region.columns.size()];
            ASSERT_EQ(fast.value[i], definition.values[static_cast<std::size_t>(row * of.problem().n + column)]);
            ++seen;
          }
        }
        const auto written = std::count_if(definition.owned.tokens.begin(), definition.owned.tokens.end(),
                                           [](std::int64_t token) { return token >= 0; });
        EXPECT_EQ(seen, written * of.problem().n);
        EXPECT_GT(seen, 0);
      }
    }
  }
}

/// Writes the rounded definition, from which one element can be taken away.
void write_definition(GroupedCase& of) {
  const GroupedOutputs definition = grouped_gemm(of.problem(), of.weights(), of.tensors());
  for (std::size_t row = 0; row < definition.owned.tokens.size(); ++row) {
    for (std::int64_t n = 0; n < of.problem().n && definition.owned.tokens[row] >= 0; ++n) {
      of.c().set_value(
          static_cast<std::int64_t>(row), n,
          static_cast<float>(
              definition.values[row * static_cast<std::size_t>(of.problem().n) + static_cast<std::size_t>(n)]));
    }
  }
}

Verdict judged(GroupedCase& of) {
  const GroupedCall call = grouped_call(of.problem(), of.weights(), of.tensors());
  return judge_grouped(call, Rule::general, whole(call));
}

TEST(GroupedJudgement, AcceptsTheDefinitionAndNamesTheRowThatIsWrong) {
  for (const Named& one : all_layouts(Format::bf16, Format::bf16)) {
    SCOPED_TRACE(one.name);
    GroupedCase of(one.problem, one.form);
    write_definition(of);
    const Verdict right = judged(of);
    EXPECT_TRUE(right.passed) << right.explain();

    const OwnedRows owned = owned_rows(of.problem(), of.tensors());
    const std::int64_t row = owned.groups[2].first;
    ASSERT_GE(owned.tokens[static_cast<std::size_t>(row + (one.problem.layout == RowLayout::gathered ? 1 : 0))], 0);
    const std::int64_t wrong_row = row + (one.problem.layout == RowLayout::gathered ? 1 : 0);
    of.c().set_value(wrong_row, 3, static_cast<float>(of.c().value(wrong_row, 3)) + 5.0F);
    const Verdict wrong = judged(of);
    EXPECT_FALSE(wrong.passed);
    EXPECT_EQ(wrong.wrong, 1);
    EXPECT_EQ(wrong.worst.row, wrong_row);
    EXPECT_EQ(wrong.worst.column, 3);
  }
}

/// A row weight widens and narrows what is allowed with the output.
TEST(GroupedJudgement, TheToleranceFollowsTheRowsWeight) {
  const std::vector<float> weights{1, 0, 100};
  const OutputMatrix of{.m = 3, .n = 1, .out = Format::fp32, .activation = Activation{}, .row_weights = weights.data()};
  const PlainErrors plain{.gate = 1e-3, .up = 1e-3, .activation = 1e-4};
  const double one = bound_for(of, Rule::general, 0, 1, 1, plain);
  EXPECT_NEAR(bound_for(of, Rule::general, 2, 1, 1, plain), 100 * one, 1e-3 * one);
  EXPECT_LT(bound_for(of, Rule::general, 1, 1, 1, plain), 1e-30);
}

TEST(GroupedJudgement, FastIsTheDefinitionOnFoldedOperands) {
  GroupedProblem problem{.experts = 2,
                         .rows = 9,
                         .n = 16,
                         .k = 64,
                         .a = Format::fp16,
                         .b = Format::nvfp4,
                         .out = Format::fp16,
                         .activation = Activation{}};
  GroupedCase of(problem, {.groups = {0, 4, 9}, .order = GateUpOrder::interleaved});
  const GroupedCall call = grouped_call(problem, of.weights(), of.tensors());
  const GroupRegion part = whole(call)[1];
  const Outputs exact = grouped_outputs(call, part, Accumulation::float64);
  const Outputs fast = grouped_outputs(call, part, Accumulation::float64, Numerics::fast);
  double difference = 0;
  double norm = 0;
  for (std::size_t i = 0; i < exact.gate.size(); ++i) {
    difference += (exact.gate[i] - fast.gate[i]) * (exact.gate[i] - fast.gate[i]);
    norm += exact.gate[i] * exact.gate[i];
  }
  EXPECT_GT(difference, 0);
  EXPECT_LT(difference, 0.1 * 0.1 * norm);  // some 4 %
}

}  // namespace
}  // namespace thresher::reference
