#include "thresher/attention.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>

#include "reference/attention_judgement.hpp"
#include "support/attention_case.hpp"
#include "thresher/error.hpp"

namespace thresher {
namespace {

using test::AttentionCase;

std::string refusal(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what();
  }
  return "accepted";
}

std::string plan_refusal(const AttentionProblem& problem, const AttentionOptions& options = {}) {
  return refusal([&] { (void)plan(Device::cpu(), problem, options); });
}

TEST(Attention, RunsOnTheCpuThroughThePublicApi) {
  AttentionCase c({.batch = 2, .heads = 6, .kv_heads = 2, .queries = 40, .keys = 70, .head_dim = 128, .causal = true},
                  test::Order::rows_first);
  const Attention attention = plan(Device::cpu(), c.problem);
  EXPECT_EQ(attention.strategy(), "blockwise");
  EXPECT_EQ(attention.workspace_bytes(), 0U);
  attention.run({}, c.tensors);
  const auto judgement = reference::judge_attention(c.problem, c.tensors);
  EXPECT_TRUE(judgement.passed) << judgement.evidence;
}

TEST(Attention, NoQueriesIsNothingToDo) {
  AttentionCase c({.queries = 0, .keys = 5});
  plan(Device::cpu(), c.problem).run({}, c.tensors);
}

TEST(Attention, ProblemsThatCannotBeAreRefused) {
  EXPECT_EQ(plan_refusal({.head_dim = 80}), "problem.head_dim is 80, expected 64 or 128");
  EXPECT_EQ(plan_refusal({.heads = 6, .kv_heads = 4}),
            "problem.heads is 6, expected a multiple of problem.kv_heads, which is 4");
  EXPECT_EQ(plan_refusal({.kv_heads = 0}), "problem.kv_heads is 0, expected 1 to 2147483647");
  EXPECT_EQ(plan_refusal({.queries = -1}), "problem.queries is -1, expected 0 to 2147483647");
  EXPECT_EQ(plan_refusal({.format = Format::fp32}), "problem.format is fp32, expected fp16 or bf16");
  EXPECT_EQ(plan_refusal({.scale = std::numeric_limits<float>::infinity()}),
            "problem.scale is inf, expected a finite number");
  EXPECT_EQ(plan_refusal({.window_left = -2}), "problem.window_left is -2, expected -1 (unbounded) to 2147483647");
  EXPECT_EQ(plan_refusal({.softcap = -1.0F}), "problem.softcap is -1, expected 0 (none) or a finite number above 0");
  EXPECT_EQ(plan_refusal({}, {.strategy = "magic"}), "strategy magic is not known: use one of blockwise");
  EXPECT_EQ(plan_refusal({}, {.threads = -1}), "options.threads is -1, expected 0 (all) or more");
}

/// The refusal of a run whose tensors `change` spoilt; o must be untouched.
std::string run_refusal(const std::function<void(AttentionTensors&)>& change) {
  AttentionCase c({.batch = 2, .heads = 4, .kv_heads = 2, .queries = 8, .keys = 16});
  change(c.tensors);
  const std::string sentence = refusal([&] { plan(Device::cpu(), c.problem).run({}, c.tensors); });
  for (const std::uint16_t value : c.o) {
    EXPECT_EQ(value, AttentionCase::poison);
  }
  return sentence;
}

TEST(Attention, TensorsThatDoNotFitAreRefusedAndNothingIsWritten) {
  EXPECT_EQ(run_refusal([](auto& t) { t.k.shape[2] = 15; }), "k is [2, 2, 15, 64], expected [2, 2, 16, 64]");
  EXPECT_EQ(run_refusal([](auto& t) { t.v.format = Format::bf16; }), "v is bf16, expected fp16");
  EXPECT_EQ(run_refusal([](auto& t) { t.q.rank = 3; }), "q is [2, 4, 8], expected [2, 4, 8, 64]");
  EXPECT_EQ(run_refusal([](auto& t) { t.q.strides[2] = 68; }),
            "q has stride 68 along dimension 2, expected a multiple of 8 elements that is not negative");
  EXPECT_EQ(run_refusal([](auto& t) { t.k.strides[1] = -1024; }),
            "k has stride -1024 along dimension 1, expected a multiple of 8 elements that is not negative");
  EXPECT_EQ(run_refusal([](auto& t) { t.v.strides[3] = 2; }),
            "v has stride 2 along its last dimension, expected 1 (contiguous)");
  EXPECT_EQ(run_refusal([](auto& t) { t.o.strides[1] = 64; }),
            "o has overlapping rows: a stride of 64 where the smaller dimensions reach over 256 elements");
  EXPECT_EQ(run_refusal([](auto& t) { t.lse.strides[1] = 7; }),
            "lse has overlapping rows: a stride of 7 where the smaller dimensions reach over 8 elements");
  EXPECT_NE(run_refusal([](auto& t) { t.o.data = static_cast<char*>(t.o.data) + 8; }).find("multiple of 16 bytes"),
            std::string::npos);
  EXPECT_EQ(run_refusal([](auto& t) { t.q.data = nullptr; }), "q has a null data pointer");
  EXPECT_NE(run_refusal([](auto& t) { t.k.data = static_cast<char*>(t.k.data) + 2; }).find("multiple of 16 bytes"),
            std::string::npos);
  EXPECT_EQ(run_refusal([](auto& t) {
              t.o.device = {DeviceKind::cuda, 0};
            }),
            "o is in the memory of GPU 0, expected the CPU: copy it there first");
  EXPECT_EQ(run_refusal([](auto& t) { t.lse.shape[2] = 7; }), "lse is [2, 4, 7], expected [2, 4, 8]");
}

std::string offsets_refusal(std::vector<std::int32_t> q, std::vector<std::int32_t> k) {
  AttentionProblem problem{.batch = 2, .heads = 2, .kv_heads = 2, .queries = 8, .keys = 9, .variable_length = true};
  AttentionCase c(problem, test::Order::heads_first, std::move(q), std::move(k));
  return refusal([&] { plan(Device::cpu(), problem).run({}, c.tensors); });
}

TEST(Attention, OffsetsOfSequencesAreChecked) {
  EXPECT_EQ(offsets_refusal({0, 3, 8}, {0, 9, 9}), "accepted");
  EXPECT_EQ(offsets_refusal({0, 9, 8}, {0, 9, 9}),
            "cu_seqlens_q decreases from 9 to 8 at index 2, expected offsets that never decrease");
  EXPECT_EQ(offsets_refusal({1, 3, 8}, {0, 9, 9}), "cu_seqlens_q starts with 1, expected 0");
  EXPECT_EQ(offsets_refusal({0, 3, 8}, {0, 4, 8}), "cu_seqlens_k ends with 8, expected the number of rows 9");
}

}  // namespace
}  // namespace thresher
