#include "reference/attention.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <iterator>
#include <limits>
#include <memory>
#include <numeric>

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

/// The keys and values of a case in pages, gathered one sequence after another, as a case without pages.
std::unique_ptr<AttentionCase> gathered(const AttentionCase& paged) {
  AttentionProblem problem = paged.problem;
  const std::vector<std::int32_t>& lengths = paged.cu_seqlens_k;
  std::vector<std::int32_t> offsets{0};
  std::partial_sum(lengths.begin(), lengths.end(), std::back_inserter(offsets));
  problem.keys = offsets.back();
  problem.page_size = problem.pages = 0;
  auto made = std::make_unique<AttentionCase>(problem, test::Order::heads_first, paged.cu_seqlens_q, offsets);
  const auto row_elements = static_cast<std::size_t>(problem.kv_heads * problem.head_dim);
  const auto columns = static_cast<std::size_t>(paged.tensors.block_table.shape[1]);
  const auto page_size = static_cast<std::size_t>(paged.problem.page_size);
  std::size_t row = 0;
  for (std::size_t sequence = 0; sequence < lengths.size(); ++sequence) {
    for (std::size_t key = 0; key < static_cast<std::size_t>(lengths[sequence]); ++key, ++row) {
      const auto page = static_cast<std::size_t>(paged.block_table[sequence * columns + key / page_size]);
      const auto from = static_cast<std::ptrdiff_t>((page * page_size + key % page_size) * row_elements);
      const auto to = static_cast<std::ptrdiff_t>(row * row_elements);
      std::copy_n(paged.k.begin() + from, row_elements, made->k.begin() + to);
      std::copy_n(paged.v.begin() + from, row_elements, made->v.begin() + to);
    }
  }
  made->q = paged.q;
  made->tensors.q.data = made->q.data();
  return made;
}

TEST(AttentionDefinition, KeysInPagesAreThoseThatTheTableNames) {
  AttentionProblem problem{.batch = 4, .heads = 4, .kv_heads = 2, .queries = 9, .keys = 40, .causal = true};
  problem.variable_length = true;
  problem.page_size = 8;
  problem.pages = 16;
  const AttentionCase paged(problem, test::Order::heads_first, {0, 1, 4, 5, 9}, {40, 17, 0, 8});
  const auto packed = gathered(paged);
  const AttentionResult found = attention(problem, paged.tensors);
  const AttentionResult expected = attention(packed->problem, packed->tensors);
  EXPECT_EQ(found.o, expected.o);
  EXPECT_EQ(found.lse, expected.lse);
}

TEST(AttentionDefinition, ASinkIsALogitWithoutAValueThatNeitherScaleNorCapTouches) {
  AttentionProblem problem{.heads = 2, .kv_heads = 1, .queries = 6, .keys = 4, .causal = true, .scale = 0.25F};
  problem.softcap = 0.5F;
  AttentionCase c(problem);
  const AttentionResult without = attention(problem, c.tensors);
  c.problem.sinks = true;
  c.sinks = {3.0F, -1.0F};
  c.tensors.sinks = Tensor::contiguous(c.sinks.data(), Format::fp32, {2});
  const AttentionResult with = attention(c.problem, c.tensors);
  for (std::size_t row = 0; row < 12; ++row) {
    const double sink = row < 6 ? 3.0 : -1.0;
    const double sum = std::exp(without.lse[row]);
    EXPECT_NEAR(with.lse[row], std::log(sum + std::exp(sink)), 1e-13) << row;
    for (std::size_t d = 0; d < 64; ++d) {
      EXPECT_NEAR(with.o[row * 64 + d], without.o[row * 64 + d] * sum / (sum + std::exp(sink)), 1e-13);
    }
  }
  EXPECT_EQ(with.lse[0], 3.0);  // queries 0 and 1 see no key
  EXPECT_EQ(with.o[0], 0.0);
}

void expect_equal(const AttentionResult& found, const AttentionResult& expected) {
  for (std::size_t i = 0; i < found.o.size(); ++i) {
    ASSERT_NEAR(found.o[i], expected.o[i], 1e-12);
  }
  for (std::size_t i = 0; i < found.lse.size(); ++i) {
    ASSERT_NEAR(found.lse[i], expected.lse[i], 1e-12);
  }
}

TEST(AttentionDefinition, FP8KeysAreTheirCodesTimesTheDescaleOfTheirSequenceAndHead) {
  AttentionProblem problem{.batch = 2, .heads = 4, .kv_heads = 2, .queries = 3, .keys = 5, .format = Format::bf16};
  AttentionProblem of_codes = problem;
  of_codes.kv_format = Format::fp8_e4m3;
  AttentionCase wide(problem);
  AttentionCase codes(of_codes);
  codes.q = wide.q;
  codes.k_descale = {1.0F, 2.0F, 0.5F, 4.0F};  // powers of two, so that bf16 holds the products
  codes.v_descale = {2.0F, 0.25F, 1.0F, 8.0F};
  const std::size_t elements_of_head = 5 * 64;
  for (std::size_t i = 0; i < wide.k.size(); ++i) {
    const std::size_t head = i / elements_of_head;
    wide.k[i] = formats::float_to_bf16(formats::e4m3_to_float(codes.k_codes[i]) * codes.k_descale[head]);
    wide.v[i] = formats::float_to_bf16(formats::e4m3_to_float(codes.v_codes[i]) * codes.v_descale[head]);
  }
  const AttentionResult found = attention(of_codes, codes.tensors);
  const AttentionResult expected = attention(problem, wide.tensors);
  expect_equal(found, expected);
}

TEST(AttentionDefinition, FP8QueriesAreTheirCodesTimesTheDescaleOfTheirSequenceAndHeadOfKeys) {
  AttentionProblem of_keys{.batch = 2, .heads = 4, .kv_heads = 2, .queries = 3, .keys = 5, .format = Format::bf16};
  of_keys.kv_format = Format::fp8_e4m3;
  AttentionProblem of_codes = of_keys;
  of_codes.q_format = Format::fp8_e4m3;
  AttentionCase wide(of_keys);
  AttentionCase codes(of_codes);
  wide.k_codes = codes.k_codes;
  wide.v_codes = codes.v_codes;
  wide.k_descale = codes.k_descale = {1.0F, 3.0F, 0.7F, 4.0F};
  wide.v_descale = codes.v_descale;
  codes.q_descale = {1.0F, 2.0F, 0.5F, 4.0F};  // powers of two, so that bf16 holds the products
  const std::size_t elements_of_group = 2 * 3 * 64;
  for (std::size_t i = 0; i < wide.q.size(); ++i) {
    wide.q[i] =
        formats::float_to_bf16(formats::e4m3_to_float(codes.q_codes[i]) * codes.q_descale[i / elements_of_group]);
  }
  const AttentionResult found = attention(of_codes, codes.tensors);
  const AttentionResult expected = attention(of_keys, wide.tensors);
  expect_equal(found, expected);
}

/// One key that outweighs 400 others by 2^14: where the largest weight is 2^8, a code holds 2^-6 exactly.
TEST(AttentionDefinition, SmallWeightsOfFP8QueriesAreAsFineAsCodesBelow256) {
  AttentionProblem problem{.queries = 1, .keys = 401, .format = Format::bf16};
  problem.kv_format = problem.q_format = Format::fp8_e4m3;
  AttentionCase host(problem);
  const std::uint8_t one = formats::float_to_e4m3(1.0F);
  std::fill(host.q_codes.begin(), host.q_codes.end(), one);
  std::fill(host.k_codes.begin(), host.k_codes.end(), std::uint8_t{0});
  std::fill_n(host.k_codes.begin(), 64, one);
  std::fill(host.v_codes.begin(), host.v_codes.end(), one);
  std::fill_n(host.v_codes.begin(), 64, std::uint8_t{0});
  host.q_descale = host.k_descale = host.v_descale = {1.0F};
  host.problem.scale = 14.0F * 0.693147181F / 64.0F;
  const AttentionResult definition = attention(host.problem, host.tensors);
  const AttentionResult plain = attention_plain_low_precision(host.problem, host.tensors);
  ASSERT_NEAR(definition.o[0], 400.0 / (400 + 16384), 1e-6);
  EXPECT_NEAR(plain.o[0], definition.o[0], 1e-4);
}

TEST(AttentionDefinition, AValueDimensionOfItsOwnTakesTheFirstColumnsOfAWiderOne) {
  AttentionProblem narrow_values{.heads = 2, .queries = 4, .keys = 6, .head_dim = 128, .value_dim = 64};
  AttentionProblem wide_values = narrow_values;
  wide_values.value_dim = 0;
  AttentionCase wide(wide_values);
  AttentionTensors narrow = wide.tensors;
  narrow.v.shape[3] = narrow.o.shape[3] = 64;
  const AttentionResult expected = attention(wide_values, wide.tensors);
  const AttentionResult found = attention(narrow_values, narrow);
  EXPECT_EQ(found.lse, expected.lse);
  for (std::size_t i = 0; i < found.o.size(); ++i) {
    ASSERT_EQ(found.o[i], expected.o[i / 64 * 128 + i % 64]);
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
