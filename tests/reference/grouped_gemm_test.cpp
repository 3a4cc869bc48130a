#include "reference/grouped_gemm.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/grouped_weights.hpp"
#include "formats/elements.hpp"
#include "reference/activation.hpp"
#include "thresher/error.hpp"

namespace thresher::reference {
namespace {

constexpr float float_infinity = std::numeric_limits<float>::infinity();

/// fp32 tensors, of which the definition reads any.
struct Values {
  std::vector<float> numbers;
  Tensor view;

  Values(std::initializer_list<std::int64_t> shape, std::vector<float> values) : numbers(std::move(values)) {
    view = Tensor::contiguous(numbers.data(), Format::fp32, shape);
  }
  Values(const Values&) = delete;
};

struct Integers {
  std::vector<std::int32_t> numbers;
  Tensor view;

  explicit Integers(std::vector<std::int32_t> values) : numbers(std::move(values)) {
    view = Tensor::contiguous(numbers.data(), Format::int32, {static_cast<std::int64_t>(numbers.size())});
  }
  Integers(const Integers&) = delete;
};

GroupedProblem small(std::int64_t experts, std::int64_t rows) {
  return {.experts = experts, .rows = rows, .n = 1, .k = 1, .a = Format::fp32, .b = Format::fp32};
}

/// The rows that offsets give each expert.
OwnedRows packed(std::int64_t rows, std::vector<std::int32_t> offsets) {
  Values c({rows, 1}, std::vector<float>(static_cast<std::size_t>(rows)));
  Integers of(std::move(offsets));
  return owned_rows(small(std::ssize(of.numbers) - 1, rows), {.c = c.view, .offsets = of.view});
}

void expect_groups(const OwnedRows& owned, const std::vector<std::pair<int, int>>& wanted) {
  ASSERT_EQ(owned.groups.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(owned.groups[i].first, wanted[i].first) << i;
    EXPECT_EQ(owned.groups[i].count, wanted[i].second) << i;
  }
}

TEST(GroupedRows, OffsetsAreHalfOpenRanges) {
  const OwnedRows owned = packed(10, {1, 4, 4, 9});
  expect_groups(owned, {{1, 3}, {4, 0}, {4, 5}});
  EXPECT_EQ(owned.tokens, (std::vector<std::int64_t>{-1, 1, 2, 3, 4, 5, 6, 7, 8, -1}));
  EXPECT_EQ(owned.status, GroupedStatus{});
}

TEST(GroupedRows, NonsenseIsLimitedSoThatGroupsNeverOverlap) {
  const OwnedRows decreasing = packed(20, {0, 10, 5, 20});
  expect_groups(decreasing, {{0, 10}, {10, 0}, {10, 10}});
  EXPECT_EQ(decreasing.status.flags, GroupedStatus::decreasing);

  const OwnedRows beyond = packed(8, {0, 5, 2000000000, 8});
  expect_groups(beyond, {{0, 5}, {5, 3}, {8, 0}});
  EXPECT_EQ(beyond.status.flags, GroupedStatus::beyond | GroupedStatus::decreasing);

  const OwnedRows negative = packed(8, {-7, 2, -1, 6});
  expect_groups(negative, {{0, 2}, {2, 0}, {2, 4}});
  EXPECT_EQ(negative.status.flags, GroupedStatus::negative | GroupedStatus::decreasing);
  EXPECT_FALSE(negative.status.makes_sense());
}

TEST(GroupedRows, CountsAreLimitedToTheSlot) {
  GroupedProblem problem = small(4, 3);
  problem.layout = RowLayout::slots;
  Values c({4, 3, 1}, std::vector<float>(12));
  Integers counts({2, 0, 7, -3});
  const OwnedRows owned = owned_rows(problem, {.c = c.view, .counts = counts.view});
  expect_groups(owned, {{0, 2}, {3, 0}, {6, 3}, {9, 0}});
  EXPECT_EQ(owned.status.flags, GroupedStatus::negative | GroupedStatus::beyond);
  EXPECT_EQ(owned.tokens, (std::vector<std::int64_t>{0, 1, -1, -1, -1, -1, 6, 7, 8, -1, -1, -1}));
}

TEST(GroupedRows, IdsOutsideAreSkippedAndMayRepeat) {
  GroupedProblem problem = small(2, 7);
  problem.layout = RowLayout::gathered;
  problem.row_ids_divisor = 2;
  Values a({3, 1}, {1, 2, 3});
  Values c({7, 1}, std::vector<float>(7));
  Integers offsets({0, 4, 6});
  Integers ids({5, 5, -1, 6, 0, 1, 99});
  const OwnedRows owned = owned_rows(problem, {.a = a.view, .c = c.view, .offsets = offsets.view, .row_ids = ids.view});
  EXPECT_EQ(owned.tokens, (std::vector<std::int64_t>{2, 2, -1, -1, 0, 0, -1}));
  EXPECT_EQ(owned.status.flags, GroupedStatus::skipped_rows);
  EXPECT_TRUE(owned.status.makes_sense());

  ids.numbers = {5, 5, 4, 3, 0, 1, 99};  // no expert owns the last row
  EXPECT_EQ(owned_rows(problem, {.a = a.view, .c = c.view, .offsets = offsets.view, .row_ids = ids.view}).status,
            GroupedStatus{});
}

double silu(double x) { return x / (1.0 + std::exp(-x)); }

TEST(GroupedDefinition, EveryGroupHasItsOwnGateAndUp) {
  GroupedProblem problem = small(2, 3);
  problem.activation = Activation{};
  Values a({3, 1}, {1, 2, 3});
  Values b1({2, 1, 1}, {0.5F, -1});
  Values b2({2, 1, 1}, {4, 5});
  Values c({3, 1}, {0, 0, 0});
  Integers offsets({0, 1, 3});
  const GroupedOutputs out =
      grouped_gemm(problem, {.b1 = b1.view, .b2 = b2.view}, {.a = a.view, .c = c.view, .offsets = offsets.view});
  EXPECT_DOUBLE_EQ(out.values[0], silu(0.5) * 4);
  EXPECT_DOUBLE_EQ(out.values[1], silu(-2) * 10);
  EXPECT_DOUBLE_EQ(out.values[2], silu(-3) * 15);
}

TEST(GroupedDefinition, BiasComesBeforeTheActivationAndTheRowWeightBehindIt) {
  GroupedProblem problem = small(1, 2);
  problem.activation = Activation{};
  problem.bias = true;
  problem.row_weights = true;
  Values a({2, 1}, {1, 2});
  Values b1({1, 1, 1}, {1});
  Values b2({1, 1, 1}, {3});
  Values bias1({1, 1}, {0.25F});
  Values bias2({1, 1}, {-7});
  Values weights({2}, {0.5F, -2});
  Values c({2, 1}, {0, 0});
  Integers offsets({0, 2});
  const GroupedOutputs out =
      grouped_gemm(problem, {.b1 = b1.view, .b2 = b2.view, .bias1 = bias1.view, .bias2 = bias2.view},
                   {.a = a.view, .c = c.view, .offsets = offsets.view, .row_weights = weights.view});
  EXPECT_DOUBLE_EQ(out.values[0], silu(1.25) * (3 - 7) * 0.5);
  EXPECT_DOUBLE_EQ(out.values[1], silu(2.25) * (6 - 7) * -2);

  problem.activation.reset();
  const GroupedOutputs plain =
      grouped_gemm(problem, {.b1 = b1.view, .bias1 = bias1.view},
                   {.a = a.view, .c = c.view, .offsets = offsets.view, .row_weights = weights.view});
  EXPECT_DOUBLE_EQ(plain.values[1], 2.25 * -2);
}

/// Two experts of two outputs, fused in an order: gate rows 1, 2 (of expert 1: 11, 12), up rows 3, 4 (13, 14).
std::vector<float> fused(GateUpOrder order) {
  switch (order) {
    case GateUpOrder::gate_first: return {1, 2, 3, 4, 11, 12, 13, 14};
    case GateUpOrder::up_first: return {3, 4, 1, 2, 13, 14, 11, 12};
    case GateUpOrder::interleaved: return {1, 3, 2, 4, 11, 13, 12, 14};
  }
  return {};
}

TEST(GroupedDefinition, TheOrderSaysWhichRowsAreTheGate) {
  for (const GateUpOrder order : all_gate_up_orders) {
    SCOPED_TRACE(name(order));
    GroupedProblem problem = small(2, 2);
    problem.n = 2;
    problem.activation = Activation{};
    problem.bias = true;
    Values a({2, 1}, {1, 1});
    Values b({2, 4, 1}, fused(order));
    Values bias({2, 4}, fused(order));
    Values c({2, 2}, {0, 0, 0, 0});
    Integers offsets({0, 1, 2});
    const GroupedWeights weights{.b1 = b.view, .order = order, .bias1 = bias.view};
    const GroupedOutputs out = grouped_gemm(problem, weights, {.a = a.view, .c = c.view, .offsets = offsets.view});
    EXPECT_DOUBLE_EQ(out.values[0], silu(2) * 6);
    EXPECT_DOUBLE_EQ(out.values[1], silu(4) * 8);
    EXPECT_DOUBLE_EQ(out.values[2], silu(22) * 26);
    EXPECT_DOUBLE_EQ(out.values[3], silu(24) * 28);
  }
}

TEST(GroupedDefinition, SlotsAndGatheredRowsTakeTheirTokens) {
  GroupedProblem problem = small(2, 2);
  problem.layout = RowLayout::slots;
  problem.row_weights = true;
  Values a({2, 2, 1}, {1, 2, 3, 4});
  Values b({2, 1, 1}, {10, 100});
  Values c({2, 2, 1}, {0, 0, 0, 0});
  Values row_weights({2, 2}, {1, 1, 1, 3});
  Integers counts({1, 2});
  EXPECT_EQ(grouped_gemm(problem, {.b1 = b.view},
                         {.a = a.view, .c = c.view, .counts = counts.view, .row_weights = row_weights.view})
                .values,
            (std::vector<double>{10, 0, 300, 1200}));

  problem.layout = RowLayout::gathered;
  problem.row_weights = false;
  Values tokens({2, 1}, {5, 7});
  Values rows({4, 1}, {0, 0, 0, 0});
  Integers offsets({0, 2, 4});
  Integers ids({1, 1, 0, -1});
  EXPECT_EQ(grouped_gemm(problem, {.b1 = b.view},
                         {.a = tokens.view, .c = rows.view, .offsets = offsets.view, .row_ids = ids.view})
                .values,
            (std::vector<double>{70, 70, 500, 0}));
}

TEST(GroupedDefinition, EveryExpertHasItsGlobalScales) {
  GroupedProblem problem{
      .experts = 2, .rows = 2, .n = 1, .k = 16, .a = Format::nvfp4, .b = Format::nvfp4, .activation = Activation{}};
  std::vector<std::uint8_t> ones(32, 0x22);
  const std::vector<std::uint8_t> scales(4, 0x38);
  const float of_tokens = 0.25F;
  const std::vector<float> of_gate{0.125F, 0.5F};
  const std::vector<float> of_up{2.0F, 4.0F};
  const Tensor a = Tensor::nvfp4(ones.data(), scales.data(), 2, 16, &of_tokens);
  Tensor fused = Tensor::contiguous(ones.data(), Format::nvfp4, {2, 2, 16});
  fused.scales.data = scales.data();
  fused.global_scale = of_gate.data();
  Values c({2, 1}, {0, 0});
  Integers offsets({0, 1, 2});
  const GroupedWeights weights{.b1 = fused, .order = GateUpOrder::gate_first, .up_global_scale = of_up.data()};
  const GroupedOutputs out = grouped_gemm(problem, weights, {.a = a, .c = c.view, .offsets = offsets.view});
  EXPECT_DOUBLE_EQ(out.values[0], silu(16 * 0.25 * 0.125) * (16 * 0.25 * 2));
  EXPECT_DOUBLE_EQ(out.values[1], silu(16 * 0.25 * 0.5) * (16 * 0.25 * 4));
}

TEST(GroupedDefinition, Float32DecidesWhatIsInfinite) {
  EXPECT_EQ(output_element(3e38, 0, std::nullopt, 4), static_cast<double>(float_infinity));
  EXPECT_TRUE(std::isnan(output_element(3e39, 0, std::nullopt, 0)));
  EXPECT_EQ(output_element(2, 0, std::nullopt, 0.25), 0.5);
}

TEST(GroupedDefinition, RefusesWhatIsNotAsTheProblemSays) {
  GroupedProblem problem = small(1, 1);
  Values a({1, 1}, {1});
  Values b({1, 1, 1}, {1});
  Values c({1, 1}, {0});
  Integers offsets({0, 1, 1});
  EXPECT_THROW((void)grouped_gemm(problem, {.b1 = b.view}, {.a = a.view, .c = c.view, .offsets = offsets.view}), Error);
}

/// What the views name is what the definition reads: every row of both matrices of every expert.
TEST(WeightViewsTest, NameTheRowsOfGateAndUpInEveryOrder) {
  for (const GateUpOrder order : all_gate_up_orders) {
    SCOPED_TRACE(name(order));
    Values b({2, 4, 1}, fused(order));
    Values bias({2, 4}, fused(order));
    const WeightViews views = weight_views({.b1 = b.view, .order = order, .bias1 = bias.view});
    for (std::int64_t expert = 0; expert < 2; ++expert) {
      for (std::int64_t n = 0; n < 2; ++n) {
        const auto value = [&](const Tensor& view) {
          const ExpertMatrix of = expert_matrix(view, expert);
          return formats::element(of.matrix, n * of.row_step, 0);
        };
        EXPECT_EQ(value(views.gate), static_cast<double>(10 * expert + n + 1));
        EXPECT_EQ(value(views.up), static_cast<double>(10 * expert + n + 3));
        const auto bias_value = [&](const Tensor& of) {
          return static_cast<const float*>(of.data)[expert * of.strides[0] + n * of.strides[1]];
        };
        EXPECT_EQ(bias_value(views.gate_bias), static_cast<float>(10 * expert + n + 1));
        EXPECT_EQ(bias_value(views.up_bias), static_cast<float>(10 * expert + n + 3));
      }
    }
  }
}

/// NVFP4 views name the scales of their rows too, and separate tensors may have blocked ones.
TEST(WeightViewsTest, ScalesFollowTheirRows) {
  constexpr std::int64_t experts = 3;
  constexpr std::int64_t n = 5;
  constexpr std::int64_t k = 48;
  std::vector<std::uint8_t> values(static_cast<std::size_t>(experts * 2 * n * k / 2));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<std::uint8_t>(i * 37 + 1);
  }
  std::vector<std::uint8_t> scales(static_cast<std::size_t>(experts * 2 * n * k / 16));
  for (std::size_t i = 0; i < scales.size(); ++i) {
    scales[i] = static_cast<std::uint8_t>(8 + i % 100);
  }
  const std::vector<float> globals{1, 2, 3};
  Tensor whole = Tensor::contiguous(values.data(), Format::nvfp4, {experts, 2 * n, k});
  whole.scales.data = scales.data();
  whole.global_scale = globals.data();
  for (const GateUpOrder order : all_gate_up_orders) {
    SCOPED_TRACE(name(order));
    const WeightViews views = weight_views({.b1 = whole, .order = order});
    for (std::int64_t expert = 0; expert < experts; ++expert) {
      const Tensor fused_matrix = slot_matrix(whole, expert);
      const ExpertMatrix up = expert_matrix(views.up, expert);
      EXPECT_EQ(*up.matrix.global_scale, globals[static_cast<std::size_t>(expert)]);
      for (std::int64_t row = 0; row < n; ++row) {
        const std::int64_t there = order == GateUpOrder::interleaved  ? 2 * row + 1
                                   : order == GateUpOrder::gate_first ? n + row
                                                                      : row;
        for (const std::int64_t column : {0, 17, 47}) {
          EXPECT_EQ(formats::element(up.matrix, row * up.row_step, column),
                    formats::element(fused_matrix, there, column));
        }
      }
    }
  }

  std::vector<std::uint8_t> blocked(static_cast<std::size_t>(experts) * scale_bytes(2 * n, k, ScaleLayout::blocked));
  for (std::size_t i = 0; i < blocked.size(); ++i) {
    blocked[i] = static_cast<std::uint8_t>(8 + i % 101);
  }
  whole.scales.data = blocked.data();
  whole.scales.layout = ScaleLayout::blocked;
  const ExpertMatrix last = expert_matrix(weight_views({.b1 = whole, .b2 = whole}).up, 2);
  EXPECT_EQ(last.matrix.scales.codes(), blocked.data() + 2 * scale_bytes(2 * n, k, ScaleLayout::blocked));
  EXPECT_EQ(last.row_step, 1);
}

}  // namespace
}  // namespace thresher::reference
