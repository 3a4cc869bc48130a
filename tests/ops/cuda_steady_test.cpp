// Bits that do not depend on the batch, on a GPU: every number of rows from 1 to 256, and many sequences.
#include <gtest/gtest.h>

#include "support/gpu_grouped_case.hpp"
#include "support/steady_case.hpp"

namespace thresher {
namespace {

using test::unsteady_experts;
using test::unsteady_gemm;
using test::unsteady_mlp;
using test::unsteady_pages;
using test::unsteady_sequences;

constexpr std::int64_t most_rows = 256;
constexpr Format formats_of_weights[] = {Format::bf16, Format::fp8_block, Format::fp8_row, Format::nvfp4};

Format tokens_for(Format weights) { return weights == Format::nvfp4 ? Format::bf16 : weights; }

TEST(CudaSteady, RowsOfProductsOfEveryNumber) {
  SKIP_WITHOUT_HOPPER();
  for (const Format weights : formats_of_weights) {
    for (const auto& [n, k] : {std::pair{384, 1040}, {2560, 4096}}) {
      const GemmProblem problem{
          .m = most_rows, .n = n, .k = k, .a = tokens_for(weights), .b = weights, .out = Format::bf16};
      EXPECT_EQ(unsteady_gemm(Device::cuda(0), problem, 1), "") << name(weights) << " " << n << "x" << k;
    }
  }
}

TEST(CudaSteady, RowsOfGatedMlpsOfEveryNumber) {
  SKIP_WITHOUT_HOPPER();
  for (const Format weights : formats_of_weights) {
    GatedMlpProblem problem{.tokens = most_rows, .hidden_size = 1024, .intermediate_size = 1536};
    problem.x = problem.intermediate = tokens_for(weights);
    problem.gate_up = problem.down = weights;
    EXPECT_EQ(unsteady_mlp(Device::cuda(0), problem, 1), "") << name(weights);
  }
}

TEST(CudaSteady, RowsOfExpertsOfEveryNumber) {
  SKIP_WITHOUT_HOPPER();
  for (const Format weights : formats_of_weights) {
    MoeProblem problem{.experts = 16, .tokens = most_rows, .top_k = 4, .hidden_size = 1024, .intermediate_size = 768};
    problem.x = problem.intermediate = tokens_for(weights);
    problem.gate_up = problem.down = weights;
    EXPECT_EQ(unsteady_experts(Device::cuda(0), problem, 1), "") << name(weights);
  }
}

AttentionProblem pages(Format format, std::int64_t head_dim) {
  return {.heads = 32, .kv_heads = 8, .head_dim = head_dim, .format = format, .causal = true, .page_size = 16};
}

/// Lengths far apart, so that nothing is alike by chance.
std::vector<std::int32_t> lengths(std::size_t sequences) {
  std::vector<std::int32_t> all;
  for (std::size_t i = 0; i < sequences; ++i) {
    all.push_back(static_cast<std::int32_t>(1 + i * 577 % 3011));
  }
  return all;
}

TEST(CudaSteady, SequencesOfOneQueryOfEveryNumber) {
  SKIP_WITHOUT_HOPPER();
  const std::vector<std::int32_t> ones(70, 1);
  for (const std::int64_t head_dim : {64, 128}) {
    EXPECT_EQ(unsteady_pages(Device::cuda(0), pages(Format::bf16, head_dim), ones, lengths(ones.size())), "");
  }
  AttentionProblem codes = pages(Format::bf16, 128);
  codes.kv_format = Format::fp8_e4m3;
  EXPECT_EQ(unsteady_pages(Device::cuda(0), codes, ones, lengths(ones.size())), "");
}

/// Prompts among sequences of one query.
TEST(CudaSteady, SequencesOfOneQueryAmongPrompts) {
  SKIP_WITHOUT_HOPPER();
  std::vector<std::int32_t> queries;
  std::vector<std::int32_t> keys = lengths(24);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    queries.push_back(i % 3 == 1 ? std::min<std::int32_t>(keys[i], 150) : 1);
  }
  EXPECT_EQ(unsteady_pages(Device::cuda(0), pages(Format::bf16, 128), queries, keys), "");
}

TEST(CudaSteady, SequencesWithoutPages) {
  SKIP_WITHOUT_HOPPER();
  for (const auto& [queries, keys] : {std::pair{1, 700}, {128, 512}, {300, 1000}}) {
    EXPECT_EQ(unsteady_sequences(Device::cuda(0), {.batch = 40,
                                                   .heads = 8,
                                                   .kv_heads = 2,
                                                   .queries = queries,
                                                   .keys = keys,
                                                   .head_dim = 128,
                                                   .format = Format::bf16,
                                                   .causal = true}),
              "")
        << queries;
  }
}

}  // namespace
}  // namespace thresher
