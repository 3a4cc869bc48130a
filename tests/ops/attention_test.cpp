#include "thresher/attention.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <functional>
#include <limits>
#include <string>

#include "ops/validate_attention.hpp"
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

TEST(Attention, AStatusSaysWhatWasWrong) {
  EXPECT_EQ(AttentionStatus{}.explain(), "lengths and pages make sense");
  EXPECT_TRUE(AttentionStatus{}.makes_sense());
  const AttentionStatus status{AttentionStatus::lengths | AttentionStatus::offsets};
  EXPECT_FALSE(status.makes_sense());
  EXPECT_TRUE(status.has(AttentionStatus::lengths));
  EXPECT_FALSE(status.has(AttentionStatus::pages));
  EXPECT_EQ(status.explain(),
            "cu_seqlens_q decreases, is negative or exceeds the rows of q; a length of seqused_k is negative or "
            "exceeds the keys there may be");
}

TEST(Attention, NoQueriesIsNothingToDo) {
  AttentionCase c({.queries = 0, .keys = 5});
  plan(Device::cpu(), c.problem).run({}, c.tensors);
}

TEST(Attention, ProblemsThatCannotBeAreRefused) {
  EXPECT_EQ(plan_refusal({.head_dim = 80}), "problem.head_dim is 80, expected 64, 128, 192, 256 or 576");
  EXPECT_EQ(plan_refusal({.heads = 6, .kv_heads = 4}),
            "problem.heads is 6, expected a multiple of problem.kv_heads, which is 4");
  EXPECT_EQ(plan_refusal({.kv_heads = 0}), "problem.kv_heads is 0, expected 1 to 2147483647");
  EXPECT_EQ(plan_refusal({.queries = -1}), "problem.queries is -1, expected 0 to 2147483647");
  EXPECT_EQ(plan_refusal({.format = Format::fp32}), "problem.format is fp32, expected fp16 or bf16");
  EXPECT_EQ(plan_refusal({.scale = std::numeric_limits<float>::infinity()}),
            "problem.scale is inf, expected a finite number");
  EXPECT_EQ(plan_refusal({.window_left = -2}), "problem.window_left is -2, expected -1 (unbounded) to 2147483647");
  EXPECT_EQ(plan_refusal({.softcap = -1.0F}), "problem.softcap is -1, expected 0 (none) or a finite number above 0");
  EXPECT_EQ(plan_refusal({.value_dim = 80}), "problem.value_dim is 80, expected 64, 128, 192, 256 or 512");
  EXPECT_EQ(plan_refusal({.head_dim = 576}),
            "problem.value_dim is 0 (problem.head_dim, which is 576), expected 64, 128, 192, 256 or 512: "
            "the columns of v decide it");
  EXPECT_EQ(plan_refusal({.kv_format = Format::bf16}),
            "problem.kv_format is bf16, expected fp16 (problem.format) or fp8_e4m3");
  EXPECT_EQ(plan_refusal({.q_format = Format::bf16}),
            "problem.q_format is bf16, expected fp16 (problem.format) or fp8_e4m3");
  EXPECT_EQ(plan_refusal({.q_format = Format::fp8_e4m3}),
            "problem.q_format is fp8_e4m3, which takes problem.kv_format fp8_e4m3 too, not fp16");
  EXPECT_EQ(plan_refusal({.page_size = 16, .pages = 4}),
            "problem.page_size is 16, which takes problem.variable_length: queries are packed where keys are in pages");
  EXPECT_EQ(plan_refusal({.page_size = -1, .pages = 4}), "problem.page_size is -1, expected 1 to 2147483647");
  EXPECT_EQ(plan_refusal({.variable_length = true, .page_size = 16}), "problem.pages is 0, expected 1 to 2147483647");
  EXPECT_EQ(plan_refusal({.pages = 4}), "problem.pages is 4 without problem.page_size: set both, or neither");
  EXPECT_EQ(plan_refusal({}, {.strategy = "magic"}), "strategy magic is not known: use one of blockwise");
  EXPECT_EQ(plan_refusal({}, {.threads = -1}), "options.threads is -1, expected 0 (all) to 1024");
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
  EXPECT_EQ(run_refusal([](auto& t) { t.o.device = {DeviceKind::cuda, 0}; }),
            "o is in the memory of GPU 0, expected the CPU: copy it there first");
  EXPECT_EQ(run_refusal([](auto& t) { t.lse.shape[2] = 7; }), "lse is [2, 4, 7], expected [2, 4, 8]");
  EXPECT_EQ(run_refusal([](auto& t) { t.o.data = t.q.data; }),
            "o shares memory with q, expected an output apart from every operand");
  EXPECT_EQ(run_refusal([](auto& t) { t.v.data = t.o.data; }),
            "o shares memory with v, expected an output apart from every operand");
  EXPECT_EQ(run_refusal([](auto& t) { t.lse.data = static_cast<char*>(t.k.data) + 64; }),
            "lse shares memory with k, expected an output apart from every operand");
  EXPECT_EQ(run_refusal([](auto& t) { t.lse.data = t.o.data; }),
            "o shares memory with lse, expected an output apart from every operand");
}

TEST(Attention, AWorkspaceOverATensorIsRefused) {
  AttentionCase c({.heads = 2, .kv_heads = 1, .queries = 4, .keys = 6, .head_dim = 64});
  alignas(256) static std::array<std::byte, 4096> workspace;
  const auto said = [&](Tensor AttentionTensors::* member) {
    AttentionTensors tensors = c.tensors;
    (tensors.*member).data = workspace.data() + 512;
    return refusal(
        [&] { ops::validate_run(c.problem, tensors, workspace.data(), workspace.size(), Device::cpu().id()); });
  };
  EXPECT_EQ(said(&AttentionTensors::q),
            "q shares memory with the workspace, expected a workspace apart from every tensor");
  EXPECT_EQ(said(&AttentionTensors::v),
            "v shares memory with the workspace, expected a workspace apart from every tensor");
  EXPECT_EQ(said(&AttentionTensors::o),
            "o shares memory with the workspace, expected a workspace apart from every tensor");
  EXPECT_EQ(refusal([&] { ops::validate_run(c.problem, c.tensors, workspace.data(), workspace.size(), {}); }),
            "accepted");
}

/// Two sequences of 8 queries in all, of at most 20 keys in pages of 8, in FP8 with sinks; `change` spoils the tensors.
std::string paged_refusal(const std::function<void(AttentionCase&)>& change) {
  AttentionProblem problem{.batch = 2, .heads = 4, .kv_heads = 2, .queries = 8, .keys = 20, .variable_length = true};
  problem.kv_format = Format::fp8_e4m3;
  problem.page_size = 8;
  problem.pages = 5;
  problem.sinks = true;
  AttentionCase c(problem, test::Order::heads_first, {0, 3, 8}, {20, 9});
  change(c);
  const std::string sentence = refusal([&] { plan(Device::cpu(), c.problem).run({}, c.tensors); });
  if (sentence != "accepted") {
    EXPECT_EQ(c.o, std::vector<std::uint16_t>(c.o.size(), AttentionCase::poison));
  }
  return sentence;
}

TEST(Attention, PagesOfNoRowsAreRefused) {
  EXPECT_EQ(refusal([] { validate_pages({.batch = 2, .keys = 0, .variable_length = true}, {}, {}); }),
            "problem.page_size is 0, expected 1 to 2147483647");
}

TEST(Attention, PagesLengthsAndDescalesAreCheckedOnTheCpu) {
  EXPECT_EQ(paged_refusal([](auto&) {}), "accepted");
  EXPECT_EQ(paged_refusal([](auto& c) { c.block_table[5] = -7; }), "accepted") << "no key of sequence 1 is there";
  EXPECT_EQ(paged_refusal([](auto& c) { c.block_table[4] = 5; }),
            "block_table[1, 1] is 5, expected 0 to 4: there are 5 pages");
  EXPECT_EQ(paged_refusal([](auto& c) { c.block_table[0] = -1; }),
            "block_table[0, 0] is -1, expected 0 to 4: there are 5 pages");
  EXPECT_EQ(paged_refusal([](auto& c) { c.cu_seqlens_k[1] = 21; }),
            "seqused_k[1] is 21, expected 0 to problem.keys, which is 20");
  EXPECT_EQ(paged_refusal([](auto& c) { c.cu_seqlens_k[0] = -1; }),
            "seqused_k[0] is -1, expected 0 to problem.keys, which is 20");
  EXPECT_EQ(paged_refusal([](auto& c) { c.k_descale[3] = -1.0F; }),
            "k_descale[1, 1] is -1, expected a finite number that is not negative");
  EXPECT_EQ(paged_refusal([](auto& c) { c.v_descale[0] = std::numeric_limits<float>::quiet_NaN(); }),
            "v_descale[0, 0] is nan, expected a finite number that is not negative");
  EXPECT_EQ(paged_refusal([](auto& c) { c.k_descale[0] = 0.0F; }), "accepted");
}

TEST(Attention, QueriesInFP8AreTakenWithTheirDescale) {
  const auto run = [](const std::function<void(AttentionCase&)>& change) {
    AttentionProblem problem{.batch = 2, .heads = 4, .kv_heads = 2, .queries = 8, .keys = 16, .format = Format::bf16};
    problem.kv_format = problem.q_format = Format::fp8_e4m3;
    AttentionCase c(problem);
    change(c);
    return refusal([&] { plan(Device::cpu(), c.problem).run({}, c.tensors); });
  };
  EXPECT_EQ(run([](auto&) {}), "accepted");
  EXPECT_EQ(run([](auto& c) { c.q_descale[2] = -1.0F; }),
            "q_descale[1, 0] is -1, expected a finite number that is not negative");
  EXPECT_EQ(run([](auto& c) { c.tensors.q.format = Format::bf16; }), "q is bf16, expected fp8_e4m3");
  EXPECT_EQ(run([](auto& c) { c.tensors.q_descale.shape[0] = 1; }), "q_descale is [1, 2], expected [2, 2]");
  EXPECT_EQ(paged_refusal([](auto& c) { c.tensors.q_descale = c.tensors.k_descale; }),
            "q_descale is given, but queries are not fp8_e4m3: leave it empty");
}

TEST(Attention, TensorsOfPagesSinksAndDescalesThatDoNotFitAreRefused) {
  EXPECT_EQ(paged_refusal([](auto& c) { c.tensors.k.shape[0] = 4; }), "k is [4, 8, 2, 64], expected [5, 8, 2, 64]");
  EXPECT_EQ(paged_refusal([](auto& c) { c.tensors.v.format = Format::fp16; }), "v is fp16, expected fp8_e4m3");
  EXPECT_EQ(paged_refusal([](auto& c) { c.tensors.k.strides[1] = 136; }),
            "k has stride 136 along dimension 1, expected a multiple of 16 elements that is not negative");
  EXPECT_EQ(paged_refusal([](auto& c) { c.tensors.block_table.shape[1] = 2; }),
            "block_table is [2, 2], expected [2, 3]");
  EXPECT_EQ(paged_refusal([](auto& c) { c.tensors.block_table = {}; }),
            "block_table is missing, but problem.page_size is 8");
  EXPECT_EQ(paged_refusal([](auto& c) { c.tensors.sinks = {}; }), "sinks is missing, but problem.sinks is true");
  EXPECT_EQ(paged_refusal([](auto& c) { c.tensors.seqused_k.data = nullptr; }), "seqused_k has a null data pointer");
  EXPECT_EQ(paged_refusal([](auto& c) {
              static std::vector<std::int32_t> shared(4096);  // room for o, and nothing of another tensor
              std::copy(c.block_table.begin(), c.block_table.end(), shared.begin());
              c.tensors.o.data = c.tensors.block_table.data = shared.data();
            }),
            "o shares memory with block_table, expected an output apart from every operand");
  EXPECT_EQ(paged_refusal([](auto& c) { c.tensors.cu_seqlens_k = c.tensors.cu_seqlens_q; }),
            "cu_seqlens_k is given, but seqused_k and block_table say where the pages of keys lie: leave it empty");
  EXPECT_EQ(paged_refusal([](auto& c) { c.tensors.sinks.shape[0] = 2; }), "sinks is [2], expected [4]");
  EXPECT_EQ(paged_refusal([](auto& c) { c.problem.sinks = false; }),
            "sinks is given, but problem.sinks is false: leave it empty");
  EXPECT_EQ(paged_refusal([](auto& c) { c.tensors.k_descale.shape[1] = 4; }), "k_descale is [2, 4], expected [2, 2]");
  EXPECT_EQ(paged_refusal([](auto& c) { c.tensors.v_descale.strides[0] = -2; }),
            "v_descale has stride -2 along dimension 0, expected 0 or more");
  EXPECT_EQ(run_refusal([](auto& t) {
              static float one = 1.0F;
              t.v_descale = Tensor::contiguous(&one, Format::fp32, {1, 1});
            }),
            "v_descale is given, but keys and values are not fp8_e4m3: leave it empty");
  EXPECT_EQ(run_refusal([](auto& t) {
              static std::int32_t one = 1;
              t.block_table = Tensor::contiguous(&one, Format::int32, {1, 1});
            }),
            "block_table is given, but problem.page_size is 0 (no pages): leave it empty");
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
  EXPECT_EQ(offsets_refusal({0, 3, 9}, {0, 4, 9}), "cu_seqlens_q ends with 9, expected at most 8, the number of rows");
  EXPECT_EQ(offsets_refusal({0, 3, 8}, {0, 4, 10}),
            "cu_seqlens_k ends with 10, expected at most 9, the number of rows");
  EXPECT_EQ(offsets_refusal({0, -1, 0}, {0, 4, 9}),
            "cu_seqlens_q decreases from 0 to -1 at index 1, expected offsets that never decrease");
}

/// A batch padded for a graph: two sequences of 3 and 2 queries, two of none, and three rows that belong to nobody.
TEST(Attention, RowsBehindTheLastSequenceStayAsTheyWere) {
  const AttentionProblem padded{
      .batch = 4, .heads = 2, .kv_heads = 2, .queries = 8, .keys = 12, .variable_length = true};
  AttentionCase c(padded, test::Order::heads_first, {0, 3, 5, 5, 5}, {0, 4, 9, 9, 9});
  plan(Device::cpu(), padded).run({}, c.tensors);
  const auto judgement = reference::judge_attention(padded, c.tensors);
  EXPECT_TRUE(judgement.passed) << judgement.evidence;
  const std::size_t row = 2 * 64;
  for (std::size_t i = 5 * row; i < 8 * row; ++i) {
    EXPECT_EQ(c.o[i], AttentionCase::poison) << i;
  }
  for (std::size_t head = 0; head < 2; ++head) {
    for (std::size_t query = 0; query < 8; ++query) {
      EXPECT_EQ(c.lse[head * 8 + query] == AttentionCase::lse_poison, query >= 5) << head << ", " << query;
    }
  }
}

TEST(Attention, SoTheyDoOverPages) {
  const AttentionProblem padded{.batch = 3,
                                .heads = 2,
                                .kv_heads = 1,
                                .queries = 4,
                                .keys = 20,
                                .variable_length = true,
                                .page_size = 8,
                                .pages = 5};
  AttentionCase c(padded, test::Order::heads_first, {0, 1, 2, 2}, {20, 9, 0});
  plan(Device::cpu(), padded).run({}, c.tensors);
  const auto judgement = reference::judge_attention(padded, c.tensors);
  EXPECT_TRUE(judgement.passed) << judgement.evidence;
  for (std::size_t i = std::size_t{2} * 2 * 64; i < std::size_t{4} * 2 * 64; ++i) {
    EXPECT_EQ(c.o[i], AttentionCase::poison) << i;
  }
}

}  // namespace
}  // namespace thresher
