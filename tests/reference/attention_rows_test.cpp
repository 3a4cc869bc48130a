#include "reference/attention_rows.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <tuple>

#include "support/attention_case.hpp"

namespace thresher::reference {
namespace {

using test::AttentionCase;

constexpr double no_limit = 1e18;

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

/// `rows` holds what the dense `whole` has in its places.
void expect_rows_of(const AttentionRows& rows, const AttentionResult& whole, const AttentionCase& c,
                    const std::string& name) {
  const auto width = static_cast<std::size_t>(effective_value_dim(c.problem));
  for (std::size_t i = 0; i < rows.samples.size(); ++i) {
    const AttentionSample& at = rows.samples[i];
    const DensePosition place =
        dense_position(c.problem, sequence(c.problem, c.tensors, at.batch), at.batch, at.head, at.query);
    ASSERT_TRUE(same(rows.lse[i], whole.lse[static_cast<std::size_t>(place.lse)])) << name;
    for (std::size_t d = 0; d < width; ++d) {
      ASSERT_TRUE(same(rows.o[i * width + d], whole.o[static_cast<std::size_t>(place.o) * width + d])) << name;
    }
  }
}

TEST(AttentionRows, AreTheDefinitionsAndThePlainComputationsBitForBit) {
  std::vector<test::NamedCase> cases = test::attention_edge_cases(true);
  std::ranges::move(test::attention_serving_cases(), std::back_inserter(cases));
  for (const test::NamedCase& named : cases) {
    const auto c = named.make();
    const auto samples = sample_queries(c->problem, c->tensors, no_limit, 1);
    EXPECT_EQ(static_cast<std::int64_t>(samples.size()),
              c->problem.heads * c->problem.queries * (c->problem.variable_length ? 1 : c->problem.batch))
        << named.name;
    expect_rows_of(attention_rows(c->problem, c->tensors, samples, 2), attention_threaded(c->problem, c->tensors), *c,
                   named.name);
    expect_rows_of(attention_rows_plain_low_precision(c->problem, c->tensors, samples, 2),
                   attention_plain_low_precision(c->problem, c->tensors), *c, named.name);
  }
}

TEST(AttentionRows, ASampleTouchesEveryTileAndBothEnds) {
  const AttentionProblem problem{.batch = 2, .heads = 3, .kv_heads = 3, .queries = 200, .keys = 100, .head_dim = 64};
  const AttentionCase c(problem);
  const auto samples = sample_queries(problem, c.tensors, 1, 7);
  std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t>> tiles;
  std::set<std::int64_t> queries;
  for (const AttentionSample& at : samples) {
    tiles.insert({at.batch, at.head, at.query / 64});
    queries.insert(at.query);
  }
  EXPECT_EQ(tiles.size(), 2U * 3U * 4U);
  EXPECT_TRUE(queries.contains(0) && queries.contains(199));
  EXPECT_LE(samples.size(), 2U * 3U * 6U);
  const auto others = sample_queries(problem, c.tensors, 1, 8);
  EXPECT_FALSE(std::equal(samples.begin(), samples.end(), others.begin(), others.end(),
                          [](const auto& a, const auto& b) { return a.query == b.query; }));
}

TEST(AttentionRows, AWrongElementIsCountedWithItsTile) {
  AttentionCase c({.heads = 2, .kv_heads = 1, .queries = 130, .keys = 9, .head_dim = 64});
  const auto samples = sample_queries(c.problem, c.tensors, no_limit, 1);
  const AttentionRows definition = attention_rows(c.problem, c.tensors, samples);
  const AttentionRows plain = attention_rows_plain_low_precision(c.problem, c.tensors, samples);
  for (std::size_t i = 0; i < plain.o.size(); ++i) {
    c.o[i] = c.narrow(static_cast<float>(plain.o[i]));
  }
  for (std::size_t i = 0; i < plain.lse.size(); ++i) {
    c.lse[i] = static_cast<float>(plain.lse[i]);
  }
  EXPECT_TRUE(judge_rows(c.problem, c.tensors, definition, plain).judgement.passed);
  c.o[(130 + 70) * 64 + 5] = AttentionCase::poison;
  c.lse[130 + 71] += 0.01F;
  AttentionRowsJudgement judged = judge_rows(c.problem, c.tensors, definition, plain);
  EXPECT_FALSE(judged.judgement.passed);
  EXPECT_EQ(judged.wrong, 2);
  EXPECT_TRUE(judged.one_tile);
  EXPECT_EQ(judged.worst.head, 1);
  EXPECT_EQ(judged.worst.query, 70);
  c.lse[0] = 7;
  judged = judge_rows(c.problem, c.tensors, definition, plain);
  EXPECT_EQ(judged.wrong, 3);
  EXPECT_FALSE(judged.one_tile);
}

}  // namespace
}  // namespace thresher::reference
