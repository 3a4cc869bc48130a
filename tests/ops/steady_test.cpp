// Bits that do not depend on the batch (`deterministic`): what is chosen for a GPU, what the CPU writes, and what is
// refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "ops/attention_call.hpp"
#include "ops/product_choice.hpp"
#include "support/steady_case.hpp"

namespace thresher {
namespace {

using ops::ProductProblem;

const DeviceSpec& h200() { return device_spec("H200"); }

strategies::PlannedCall chosen(const ProductProblem& problem, const DualGemmOptions& options) {
  return ops::choose_product(problem, ops::request_of(options), DeviceKind::cuda, h200());
}

/// The strategy of a call, and how it sums.
std::string sums_of(const ProductProblem& problem, const DualGemmOptions& options) {
  const strategies::PlannedCall call = chosen(problem, options);
  const auto all = strategies::gemm::strategies_of(strategies::gemm::product_of(problem), DeviceKind::cuda);
  const auto sums = planner::named_strategy<ProductProblem>(all, call.strategy).sums(problem, call.knobs, h200());
  return call.strategy + " " + (sums ? sums->text() : "by the batch");
}

/// In how many ways plans of one to 8192 rows sum.
template <class Problem>
std::size_t sums_of_all_rows(const Problem& like, std::int64_t Problem::* rows, const DualGemmOptions& options) {
  std::set<std::string> found;
  for (std::int64_t count = 1; count <= 8192; count *= 2) {
    Problem problem = like;
    problem.*rows = count;
    found.insert(sums_of(problem, options));
  }
  return found.size();
}

Format tokens_for(Format weights) { return weights == Format::nvfp4 ? Format::bf16 : weights; }

TEST(Steady, ProductsOfEveryNumberOfRowsSumAlike) {
  for (const Format weights : {Format::bf16, Format::fp8_block, Format::fp8_row, Format::fp8_tensor, Format::nvfp4}) {
    const Format tokens = tokens_for(weights);
    const GemmProblem gemm{.n = 4096, .k = 4096, .a = tokens, .b = weights, .out = Format::bf16};
    const DualGemmProblem dual{.n = 12288, .k = 4096, .a = tokens, .b = weights, .out = Format::bf16};
    GroupedProblem grouped{.experts = 128, .n = 768, .k = 2048, .a = tokens, .b = weights, .out = Format::bf16};
    grouped.activation = Activation{};
    EXPECT_EQ(sums_of_all_rows(gemm, &GemmProblem::m, {.deterministic = "batch"}), 1U) << name(weights);
    EXPECT_EQ(sums_of_all_rows(dual, &DualGemmProblem::m, {.deterministic = "batch"}), 1U) << name(weights);
    EXPECT_EQ(sums_of_all_rows(grouped, &GroupedProblem::rows, {.deterministic = "batch"}), 1U) << name(weights);
    EXPECT_EQ(sums_of_all_rows(gemm, &GemmProblem::m, {.knobs = {{"deterministic", "batch"}}}), 1U) << name(weights);
    EXPECT_GT(sums_of_all_rows(gemm, &GemmProblem::m, {}), 1U) << name(weights);
  }
}

AttentionProblem pages(std::int64_t batch, std::int64_t queries) {
  return {.batch = batch,
          .heads = 32,
          .kv_heads = 8,
          .queries = queries,
          .keys = 4096,
          .head_dim = 128,
          .format = Format::bf16,
          .causal = true,
          .variable_length = true,
          .page_size = 16,
          .pages = 9000};
}

strategies::PlannedCall attention_call(const AttentionProblem& problem) {
  return ops::attention_call(problem, {.deterministic = "batch"}, h200());
}

/// The names of the kernels that a call launches, which say how they sum. A ring's stages do not.
std::string kernels_of(const strategies::PlannedCall& call) {
  std::string names;
  for (const strategies::Step& step : call.steps) {
    names += std::get<strategies::KernelLaunch>(step).expression + "\n";
  }
  return names;
}

TEST(Steady, SequencesOfOneQueryHaveOneKernelAlsoAmongPrompts) {
  const std::string alone = kernels_of(attention_call(pages(1, 1)));
  for (const std::int64_t batch : {2, 8, 64, 256}) {
    EXPECT_EQ(kernels_of(attention_call(pages(batch, batch))), alone) << batch;
    const strategies::PlannedCall mixed = attention_call(pages(batch, 8192));
    EXPECT_EQ(mixed.strategy, "mixed") << batch;
    EXPECT_EQ(kernels_of(mixed).substr(0, alone.size()), alone) << batch;
    EXPECT_EQ(kernels_of(mixed).substr(alone.size()), kernels_of(attention_call(pages(1, 8192)))) << batch;
  }
}

TEST(Steady, SequencesWithoutPagesHaveOneKernel) {
  AttentionProblem problem{
      .batch = 1, .heads = 8, .kv_heads = 8, .queries = 512, .keys = 512, .head_dim = 128, .format = Format::bf16};
  const std::string alone = kernels_of(attention_call(problem));
  for (const std::int64_t batch : {2, 16, 256}) {
    problem.batch = batch;
    EXPECT_EQ(kernels_of(attention_call(problem)), alone) << batch;
  }
}

std::string refusal(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Steady, WhatCannotBeIsRefusedInALine) {
  const GemmProblem gemm{.m = 4, .n = 64, .k = 64, .a = Format::bf16, .b = Format::bf16, .out = Format::bf16};
  EXPECT_EQ(refusal([&] { (void)chosen(gemm, {.deterministic = "rows"}); }),
            "deterministic is rows, expected batch or nothing");
  EXPECT_EQ(refusal([&] { (void)chosen(gemm, {.knobs = {{"deterministic", "no"}}, .deterministic = "batch"}); }),
            "options.deterministic is batch, but the knob deterministic is no: give one of them, or both alike");
  EXPECT_NE(refusal([&] {
              (void)chosen(gemm, {.knobs = {{"colour", "red"}}, .deterministic = "batch"});
            }).find("no strategy takes the knobs"),
            std::string::npos);
  const AttentionProblem problem = pages(8, 8);
  EXPECT_EQ(refusal([&] { (void)ops::attention_call(problem, {.deterministic = "rows"}, h200()); }),
            "deterministic is rows, expected batch or nothing");
  const DualGemmProblem dual{.m = 4, .n = 64, .k = 64, .a = Format::bf16, .b = Format::bf16, .out = Format::bf16};
  EXPECT_NE(refusal([&] {
              (void)chosen(dual, {.strategy = "two_pass", .deterministic = "batch"});
            }).find("deterministic is batch, but the bits of strategy two_pass depend on the batch here"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              (void)ops::attention_call(
                  problem, {.strategy = "stream_k", .knobs = {{"cluster", "1"}}, .deterministic = "batch"}, h200());
            }).find("deterministic is batch, for which cluster is 4, but the knob says 1: leave it out"),
            std::string::npos);
}

TEST(Steady, RowsOnTheCpuHaveTheBitsTheyHaveAlone) {
  const Device cpu = Device::cpu();
  for (const Format weights : {Format::bf16, Format::fp8_block, Format::fp8_row, Format::nvfp4}) {
    const Format tokens = tokens_for(weights);
    const GemmProblem small{.m = 17, .n = 72, .k = 144, .a = tokens, .b = weights, .out = Format::fp32};
    const GemmProblem large{.m = 300, .n = 200, .k = 1040, .a = tokens, .b = weights, .out = Format::fp32};
    EXPECT_EQ(test::unsteady_gemm(cpu, small, 1), "") << name(weights);
    EXPECT_EQ(test::unsteady_gemm(cpu, large, 97), "") << name(weights);
    GatedMlpProblem mlp{.tokens = 17, .hidden_size = 144, .intermediate_size = 128};
    mlp.x = tokens;
    mlp.intermediate = tokens;
    mlp.gate_up = mlp.down = weights;
    EXPECT_EQ(test::unsteady_mlp(cpu, mlp, 1), "") << name(weights);
    MoeProblem experts{.experts = 4, .tokens = 17, .top_k = 2, .hidden_size = 144, .intermediate_size = 128};
    experts.x = experts.intermediate = tokens;
    experts.gate_up = experts.down = weights;
    EXPECT_EQ(test::unsteady_experts(cpu, experts, 1), "") << name(weights);
  }
}

TEST(Steady, SequencesOnTheCpuHaveTheBitsTheyHaveAlone) {
  AttentionProblem problem{.heads = 4, .kv_heads = 2, .head_dim = 64, .format = Format::bf16, .causal = true};
  problem.page_size = 16;
  EXPECT_EQ(test::unsteady_pages(Device::cpu(), problem, {1, 1, 9, 1, 33}, {70, 3, 200, 129, 40}), "");
  EXPECT_EQ(
      test::unsteady_sequences(
          Device::cpu(),
          {.batch = 5, .heads = 4, .kv_heads = 2, .queries = 3, .keys = 70, .head_dim = 64, .format = Format::bf16}),
      "");
}

}  // namespace
}  // namespace thresher
