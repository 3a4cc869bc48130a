#include "cpu/attention.hpp"

#include <gtest/gtest.h>

#include <cctype>
#include <string>
#include <vector>

#include "cpu/attention_kernels.hpp"
#include "reference/attention_judgement.hpp"
#include "support/attention_case.hpp"

namespace thresher::cpu {
namespace {

using test::AttentionCase;

class EdgeCase : public testing::TestWithParam<test::NamedCase> {};

TEST_P(EdgeCase, FollowsTheDefinition) {
  const auto c = GetParam().make();
  attention(c->problem, c->tensors, 2);
  const auto judgement = reference::judge_attention(c->problem, c->tensors);
  EXPECT_TRUE(judgement.passed) << judgement.evidence;
  EXPECT_EQ(c->lse.back(), AttentionCase::lse_poison) << "wrote behind the end of lse";
}

INSTANTIATE_TEST_SUITE_P(CpuAttention, EdgeCase, testing::ValuesIn(test::attention_edge_cases()), test::case_name);
INSTANTIATE_TEST_SUITE_P(CpuAttentionForServing, EdgeCase, testing::ValuesIn(test::attention_serving_cases()),
                         test::case_name);

TEST(CpuAttention, DoesNotDependOnTheNumberOfThreads) {
  const AttentionProblem problem{.batch = 2, .heads = 6, .kv_heads = 2, .queries = 150, .keys = 300, .causal = true};
  AttentionCase one(problem);
  AttentionCase many(problem);
  attention(problem, one.tensors, 1);
  attention(problem, many.tensors, 7);
  EXPECT_EQ(one.o, many.o);
  EXPECT_EQ(one.lse, many.lse);
}

TEST(CpuAttention, LseIsOptional) {
  AttentionCase c({.queries = 5, .keys = 7});
  c.tensors.lse = {};
  attention(c.problem, c.tensors, 1);
  EXPECT_TRUE(reference::judge_attention(c.problem, c.tensors).passed);
  EXPECT_EQ(c.lse[0], AttentionCase::lse_poison);
}

TEST(CpuAttention, MatrixProductIsExactOnSmallIntegersForEveryCountOfRows) {
  for (std::int64_t rows = 1; rows <= 9; ++rows) {
    const std::int64_t columns = 48;
    const std::int64_t depth = 5;
    std::vector<float> a(static_cast<std::size_t>(rows * depth));
    std::vector<float> b(static_cast<std::size_t>(depth * columns));
    std::vector<float> c(static_cast<std::size_t>(rows * columns), 1.0F);
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 7) - 3.0F;
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i % 11) - 5.0F;
    matrix_product(rows, columns, depth, a.data(), depth, b.data(), columns, c.data(), columns, true);
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t column = 0; column < columns; ++column) {
        float expected = 1.0F;
        for (std::int64_t k = 0; k < depth; ++k) {
          expected += a[static_cast<std::size_t>(row * depth + k)] * b[static_cast<std::size_t>(k * columns + column)];
        }
        ASSERT_EQ(c[static_cast<std::size_t>(row * columns + column)], expected);
      }
    }
  }
}

}  // namespace
}  // namespace thresher::cpu
