// `thresher run attention` on files, as a user runs it.
#include <gtest/gtest.h>

#include <vector>

#include "cli/command.hpp"
#include "formats/safetensors.hpp"
#include "reference/attention_judgement.hpp"
#include "support/attention_case.hpp"

namespace thresher::cli {
namespace {

using test::AttentionCase;

template <typename T>
formats::TensorToWrite tensor(const char* name, formats::Dtype dtype, const Tensor& view, const std::vector<T>& data) {
  return {name, dtype, {view.shape.begin(), view.shape.begin() + view.rank}, std::as_bytes(std::span(data))};
}

void write_inputs(const AttentionCase& c, const std::filesystem::path& path) {
  using formats::Dtype;
  std::vector<formats::TensorToWrite> tensors;
  if (c.problem.q_format) {
    tensors.push_back(tensor("q", Dtype::f8_e4m3, c.tensors.q, c.q_codes));
    tensors.push_back(tensor("q_descale", Dtype::f32, c.tensors.q_descale, c.q_descale));
  } else {
    tensors.push_back(tensor("q", Dtype::f16, c.tensors.q, c.q));
  }
  if (c.problem.kv_format) {
    tensors.push_back(tensor("k", Dtype::f8_e4m3, c.tensors.k, c.k_codes));
    tensors.push_back(tensor("v", Dtype::f8_e4m3, c.tensors.v, c.v_codes));
    tensors.push_back(tensor("k_descale", Dtype::f32, c.tensors.k_descale, c.k_descale));
    tensors.push_back(tensor("v_descale", Dtype::f32, c.tensors.v_descale, c.v_descale));
  } else {
    tensors.push_back(tensor("k", Dtype::f16, c.tensors.k, c.k));
    tensors.push_back(tensor("v", Dtype::f16, c.tensors.v, c.v));
  }
  if (c.problem.variable_length) {
    tensors.push_back(tensor("cu_seqlens_q", Dtype::i32, c.tensors.cu_seqlens_q, c.cu_seqlens_q));
  }
  if (c.problem.page_size > 0) {
    tensors.push_back(tensor("block_table", Dtype::i32, c.tensors.block_table, c.block_table));
    tensors.push_back(tensor("seqused_k", Dtype::i32, c.tensors.seqused_k, c.cu_seqlens_k));
  } else if (c.problem.variable_length) {
    tensors.push_back(tensor("cu_seqlens_k", Dtype::i32, c.tensors.cu_seqlens_k, c.cu_seqlens_k));
  }
  if (c.problem.sinks) {
    tensors.push_back(tensor("sinks", Dtype::f32, c.tensors.sinks, c.sinks));
  }
  formats::write_safetensors(path, tensors);
}

/// Runs the command on the case's inputs and judges what it wrote.
void expect_right(AttentionCase& c, const std::string& options) {
  const ScratchFolder folder;
  write_inputs(c, folder.path() / "in.safetensors");
  const testing::Outcome outcome = testing::run_thresher(
      folder.path(), "run attention --device cpu --in in.safetensors --out out.safetensors " + options);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const formats::SafetensorsFile file(folder.path() / "out.safetensors");
  ASSERT_NE(file.find("o"), nullptr);
  ASSERT_NE(file.find("lse"), nullptr);
  file.read(*file.find("o"), 0, std::as_writable_bytes(std::span(c.o)));
  file.read(*file.find("lse"), 0, std::as_writable_bytes(std::span(c.lse).first(c.lse.size() - 1)));
  const auto judgement = reference::judge_attention(c.problem, c.tensors);
  EXPECT_TRUE(judgement.passed) << judgement.evidence;
}

TEST(RunAttention, WritesTheOutputsOfTheDefinition) {
  AttentionCase c({.batch = 2, .heads = 4, .kv_heads = 2, .queries = 20, .keys = 33});
  expect_right(c, "");
  c.problem.causal = true;
  c.problem.scale = -0.25F;
  c.problem.window_left = 7;
  c.problem.softcap = 3.0F;
  expect_right(c, "--causal --scale -0.25 --window 7,-1 --softcap 3 --strategy blockwise");
}

TEST(RunAttention, TakesPackedSequences) {
  AttentionCase c({.batch = 3, .heads = 2, .kv_heads = 1, .queries = 12, .keys = 30, .variable_length = true},
                  test::Order::heads_first, {0, 5, 5, 12}, {0, 10, 20, 30});
  expect_right(c, "");
}

TEST(RunAttention, TakesKeysInPagesInFP8WithDescalesAndSinks) {
  AttentionProblem problem{.batch = 3, .heads = 4, .kv_heads = 2, .queries = 12, .keys = 24, .variable_length = true};
  problem.value_dim = 128;
  problem.kv_format = Format::fp8_e4m3;
  problem.page_size = 8;
  problem.pages = 9;
  problem.sinks = true;
  AttentionCase c(problem, test::Order::heads_first, {0, 5, 5, 12}, {24, 0, 9});
  c.problem.causal = true;
  expect_right(c, "--causal");
}

TEST(RunAttention, RowsBehindTheLastSequenceAreZeros) {
  AttentionCase c({.batch = 2, .heads = 2, .kv_heads = 1, .queries = 12, .keys = 30, .variable_length = true},
                  test::Order::heads_first, {0, 3, 7}, {0, 10, 25});
  expect_right(c, "");
  EXPECT_TRUE(
      std::all_of(c.o.begin() + std::ptrdiff_t{7} * 2 * 64, c.o.end(), [](std::uint16_t value) { return value == 0; }));
}

TEST(RunAttention, TakesQueriesInFP8WithTheirDescale) {
  AttentionProblem problem{.batch = 2, .heads = 4, .kv_heads = 2, .queries = 6, .keys = 24, .format = Format::bf16};
  problem.kv_format = problem.q_format = Format::fp8_e4m3;
  AttentionCase c(problem);
  expect_right(c, "");
}

std::string refusal(AttentionCase& c, const std::string& options) {
  const ScratchFolder folder;
  write_inputs(c, folder.path() / "in.safetensors");
  const testing::Outcome outcome =
      testing::run_thresher(folder.path(), "run attention --in in.safetensors --out out.safetensors " + options);
  EXPECT_EQ(outcome.status, 2);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "out.safetensors"));
  return outcome.err;
}

TEST(RunAttention, BadInputIsOneSentenceAndWritesNothing) {
  AttentionCase packed({.batch = 2, .heads = 2, .kv_heads = 1, .queries = 12, .keys = 30, .variable_length = true},
                       test::Order::heads_first, {0, 13, 12}, {0, 10, 30});
  EXPECT_EQ(refusal(packed, ""),
            "thresher: cu_seqlens_q decreases from 13 to 12 at index 2, expected offsets that never decrease\n");
  AttentionCase heads({.heads = 3, .kv_heads = 3, .queries = 4, .keys = 4});
  heads.tensors.k.shape[1] = 2;
  heads.tensors.v.shape[1] = 2;
  heads.k.resize(heads.k.size() / 3 * 2);
  heads.v.resize(heads.v.size() / 3 * 2);
  EXPECT_EQ(refusal(heads, "--device cpu"),
            "thresher: problem.heads is 3, expected a multiple of problem.kv_heads, which is 2\n");
  AttentionCase plain({.queries = 4, .keys = 4});
  EXPECT_EQ(refusal(plain, "--device tpu"),
            "thresher: there is no device 'tpu', expected cpu, gpu, cuda:N with N counting GPUs from 0, or best\n");
}

}  // namespace
}  // namespace thresher::cli
