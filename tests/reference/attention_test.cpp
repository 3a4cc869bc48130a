#include "reference/attention.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "reference/attention_judgement.hpp"
#include "support/attention_case.hpp"

namespace thresher::reference {
namespace {

using test::AttentionCase;

constexpr double infinity = std::numeric_limits<double>::infinity();

AttentionProblem problem_of(std::int64_t queries, std::int64_t keys) {
  return {.queries = queries, .keys = keys, .head_dim = 64};
}

/// Keys with the logits 0, ln 2, ln 3 … against a query of ones (scale 1), values 10, 20, 30 … in column 0.
void set_known_values(AttentionCase& c) {
  c.problem.scale = 1.0F;
  std::fill(c.q.begin(), c.q.end(), c.narrow(0.0F));
  std::fill(c.k.begin(), c.k.end(), c.narrow(0.0F));
  std::fill(c.v.begin(), c.v.end(), c.narrow(0.0F));
  for (std::int64_t row = 0; row < c.problem.queries; ++row) {
    c.set(c.tensors.q, 0, row, 0, 1.0F);
  }
  for (std::int64_t row = 0; row < c.problem.keys; ++row) {
    c.set(c.tensors.k, 0, row, 0, static_cast<float>(row));
    c.set(c.tensors.v, 0, row, 0, static_cast<float>(10 * (row + 1)));
  }
}

TEST(AttentionDefinition, AveragesTheValuesByTheExponentialsOfTheLogits) {
  AttentionCase c(problem_of(1, 3));
  set_known_values(c);
  const AttentionResult result = attention(c.problem, c.tensors);
  const double sum = 1.0 + std::exp(1.0) + std::exp(2.0);
  EXPECT_NEAR(result.o[0], (10.0 + 20.0 * std::exp(1.0) + 30.0 * std::exp(2.0)) / sum, 1e-13);
  EXPECT_NEAR(result.lse[0], std::log(sum), 1e-15);
}

TEST(AttentionDefinition, TheScaleMultipliesTheLogitsAndTheCapBoundsThem) {
  AttentionCase c(problem_of(1, 2));
  set_known_values(c);
  c.problem.scale = -2.0F;
  EXPECT_NEAR(attention(c.problem, c.tensors).lse[0], std::log(1.0 + std::exp(-2.0)), 1e-15);
  c.problem.softcap = 0.5F;
  EXPECT_NEAR(attention(c.problem, c.tensors).lse[0], std::log(1.0 + std::exp(0.5 * std::tanh(-4.0))), 1e-15);
  EXPECT_FLOAT_EQ(effective_scale(problem_of(1, 1)), 0.125F);
}

TEST(AttentionDefinition, CausalIsAlignedBottomRight) {
  AttentionCase c(problem_of(2, 3));
  set_known_values(c);
  c.problem.causal = true;
  const AttentionResult result = attention(c.problem, c.tensors);
  EXPECT_NEAR(result.lse[0], std::log(1.0 + std::exp(1.0)), 1e-15);
  EXPECT_NEAR(result.lse[1], std::log(1.0 + std::exp(1.0) + std::exp(2.0)), 1e-15);
}

TEST(AttentionDefinition, ARowThatSeesNoKeyIsZeroWithMinusInfinity) {
  AttentionCase c(problem_of(3, 1));
  set_known_values(c);
  c.problem.causal = true;
  const AttentionResult result = attention(c.problem, c.tensors);
  EXPECT_EQ(result.lse[0], -infinity);
  EXPECT_EQ(result.lse[1], -infinity);
  EXPECT_EQ(result.o[0], 0.0);
  EXPECT_EQ(result.o[64], 0.0);
  EXPECT_EQ(result.o[128], 10.0);
}

TEST(AttentionDefinition, AWindowIsCountedFromTheDiagonal) {
  AttentionProblem problem = problem_of(2, 5);
  problem.window_left = 1;
  problem.window_right = 0;
  const Sequence seq{.first_query = 0, .queries = 2, .first_key = 0, .keys = 5};
  EXPECT_EQ(visible_keys(problem, seq, 0).begin, 2);
  EXPECT_EQ(visible_keys(problem, seq, 0).end, 4);
  problem.window_right = 3;
  EXPECT_EQ(visible_keys(problem, seq, 0).end, 5);
  problem.causal = true;
  EXPECT_EQ(visible_keys(problem, seq, 0).end, 4);
}

TEST(AttentionDefinition, InfiniteLogitsGiveNaN) {
  AttentionCase c(problem_of(1, 2));
  set_known_values(c);
  c.set(c.tensors.k, 0, 0, 0, -std::numeric_limits<float>::infinity());
  EXPECT_EQ(attention(c.problem, c.tensors).o[0], 20.0);
  c.set(c.tensors.k, 0, 1, 0, -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(attention(c.problem, c.tensors).o[0]));
  EXPECT_EQ(attention(c.problem, c.tensors).lse[0], -infinity);
}

TEST(AttentionDefinition, TheThreadedPathEqualsIt) {
  for (const test::NamedCase& named : test::attention_edge_cases(true)) {
    const auto c = named.make();
    const AttentionResult slow = attention(c->problem, c->tensors);
    const AttentionResult fast = attention_threaded(c->problem, c->tensors, 3);
    for (std::size_t i = 0; i < slow.o.size(); ++i) {
      ASSERT_TRUE(slow.o[i] == fast.o[i] || (std::isnan(slow.o[i]) && std::isnan(fast.o[i]))) << named.name << " " << i;
    }
    for (std::size_t i = 0; i < slow.lse.size(); ++i) {
      ASSERT_TRUE(slow.lse[i] == fast.lse[i] || (std::isnan(slow.lse[i]) && std::isnan(fast.lse[i]))) << named.name;
    }
  }
}

TEST(AttentionJudgement, AcceptsThePlainComputationAndRefusesAWrongElement) {
  AttentionCase c(problem_of(5, 9));
  const AttentionResult definition = attention(c.problem, c.tensors);
  const AttentionResult plain = attention_plain_low_precision(c.problem, c.tensors);
  for (std::size_t i = 0; i < plain.o.size(); ++i) {
    c.o[i] = c.narrow(static_cast<float>(plain.o[i]));
  }
  for (std::size_t i = 0; i < plain.lse.size(); ++i) {
    c.lse[i] = static_cast<float>(plain.lse[i]);
  }
  EXPECT_TRUE(judge_attention(c.problem, c.tensors, definition, plain).passed);

  const std::uint16_t right = c.o[100];
  c.o[100] = c.narrow(static_cast<float>(plain.o[100]) + 0.01F);
  const AttentionJudgement wrong = judge_attention(c.problem, c.tensors, definition, plain);
  EXPECT_FALSE(wrong.passed);
  EXPECT_NE(wrong.evidence.find("query 1, column 36"), std::string::npos) << wrong.evidence;

  c.o[100] = AttentionCase::poison;
  EXPECT_FALSE(judge_attention(c.problem, c.tensors, definition, plain).passed);
  c.o[100] = right;
  c.lse[2] += 0.001F;
  EXPECT_FALSE(judge_attention(c.problem, c.tensors, definition, plain).passed);
}

}  // namespace
}  // namespace thresher::reference
