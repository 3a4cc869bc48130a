// Many queries over keys in pages in the emulator: right on every schedule, and nothing of what the lengths, the table
// or the pool hold beyond what is used comes through.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/device_spec.hpp"
#include "core/integers.hpp"
#include "reference/attention_judgement.hpp"
#include "strategies/attention/mixed/strategy.hpp"
#include "strategies/attention/pipelined/device/kernel.hpp"
#include "strategies/attention/pipelined/strategy.hpp"
#include "strategies/attention/simple/device/kernel.hpp"
#include "strategies/attention/simple/strategy.hpp"
#include "strategies/attention/stream_k/device/kernel.hpp"
#include "strategies/attention/stream_k/strategy.hpp"
#include "strategies/attention/tensors.hpp"
#include "strategies/emulated_case.hpp"
#include "support/attention_case.hpp"

namespace thresher::strategies::attention {
namespace {

using pipeline::attention::StreamConfig;
using pipeline::attention::StreamKConfig;
using test::AttentionCase;

constexpr StreamConfig in_pages(StreamConfig config) {
  config.paged = true;
  return config;
}

constexpr StreamConfig narrow_heads = in_pages(stream_choice(64, 64, false, true));
constexpr StreamConfig wide_heads = in_pages(stream_choice(256, 256, false, false));
constexpr StreamConfig few_queries = in_pages(stream_choice(128, 64, true, true));

void add_kernels() {
  static const bool added = [] {
    add_compiled_in({pipelined_expression(narrow_heads, Format::fp16, Logits::direct),
                     &host_kernel<&pipelined<narrow_heads, Half, Logits::direct>>});
    add_compiled_in({pipelined_expression(wide_heads, Format::bf16, Logits::general),
                     &host_kernel<&pipelined<wide_heads, BFloat16, Logits::general>>});
    add_compiled_in({pipelined_expression(few_queries, Format::fp16, Logits::direct),
                     &host_kernel<&pipelined<few_queries, Half, Logits::direct>>});
    constexpr StreamKConfig decode = with_stages(stream_k_choice(64, 64, 2, 64, true), 5, 227 * 1024);
    add_compiled_in({stream_k_expression(decode, Format::fp16, Logits::direct),
                     &host_kernel<&stream_k<decode, Half, Half, Logits::direct>>});
    add_compiled_in({merge_parts_expression(decode, Format::fp16, Logits::direct),
                     &host_kernel<&merge_parts<decode, Half, Half, Logits::direct>>});
    add_compiled_in({simple_expression(Format::fp16, 64, 64), &host_kernel<&simple<Half, 64, 64>>});
    return true;
  }();
  static_cast<void>(added);
}

EmulatedCall call_of(AttentionCase& host, const Strategy<AttentionProblem>& strategy, const Knobs& knobs = {}) {
  add_kernels();
  std::vector<NamedTensor> named;
  const auto tensors = in_order(host.tensors);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    named.push_back({tensor_names[i], tensors[i]});
  }
  return {strategy.plan(host.problem, knobs, device_spec("H200")), std::move(named), test::compiled_in_kernel};
}

emulator::Options schedule(std::uint64_t seed) {
  emulator::Options options;
  options.schedule = emulator::Schedule::from_seed(seed);
  return options;
}

struct Case {
  std::string name;
  AttentionProblem problem;
  std::vector<std::int32_t> cu_q;
  std::vector<std::int32_t> used;
  Knobs knobs{};
};

Case with_lengths(std::string name, AttentionProblem problem, std::vector<std::int32_t> cu_q,
                  std::vector<std::int32_t> used, Knobs knobs = {}) {
  problem.variable_length = true;
  problem.batch = static_cast<std::int64_t>(used.size());
  problem.queries = cu_q.back();
  problem.keys = *std::max_element(used.begin(), used.end()) + 3;
  problem.pages = 2;
  for (const std::int32_t keys : used) {
    problem.pages += ceil_div(std::int64_t{keys}, problem.page_size);
  }
  return {std::move(name), problem, std::move(cu_q), std::move(used), std::move(knobs)};
}

std::vector<Case> cases() {
  std::vector<Case> all;
  AttentionProblem chunks{.heads = 2, .kv_heads = 1, .causal = true};
  chunks.page_size = 16;
  chunks.sinks = true;
  all.push_back(with_lengths("chunks_of_prompts", chunks, {0, 90, 90, 93, 100}, {390, 65, 128, 0}));
  AttentionProblem wide{.heads = 1, .head_dim = 256, .format = Format::bf16, .causal = true, .window_left = 120};
  wide.page_size = 24;
  wide.softcap = 3.0F;
  all.push_back(with_lengths("wide_heads_window_softcap", wide, {0, 70, 75}, {250, 81}));
  AttentionProblem few{.heads = 2, .kv_heads = 2, .head_dim = 128, .value_dim = 64};
  few.page_size = 256;
  all.push_back(with_lengths("few_queries_large_pages", few, {0, 5, 40}, {300, 130},
                             {{"math_warpgroups", "1"}, {"take_turns", "0"}}));
  return all;
}

std::string text_of(const emulator::Report& report) {
  std::string text;
  for (const emulator::Finding& finding : report.findings) {
    text += to_string(finding);
  }
  return text;
}

void expect_right(AttentionCase& host, EmulatedCall& call, std::uint64_t seed) {
  const emulator::Report report = call.run(schedule(seed));
  ASSERT_TRUE(report.clean()) << text_of(report);
  const auto judgement = reference::judge_attention(host.problem, host.tensors);
  EXPECT_TRUE(judgement.passed) << judgement.evidence;
}

class PipelinedPages : public testing::TestWithParam<Case> {};

TEST_P(PipelinedPages, AreRightOnEverySchedule) {
  AttentionCase host(GetParam().problem, test::Order::heads_first, GetParam().cu_q, GetParam().used);
  EmulatedCall call = call_of(host, pipelined_strategy(), GetParam().knobs);
  for (const std::uint64_t seed : {0, 3, 17}) {
    std::fill(host.o.begin(), host.o.end(), AttentionCase::poison);
    expect_right(host, call, seed);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, PipelinedPages, testing::ValuesIn(cases()),
                         [](const auto& tested) { return tested.param.name; });

/// All flags of a call's status.
u32 flags_of(const EmulatedCall& call) {
  std::vector<u32> words(call.planned().workspace.front().bytes / sizeof(u32));
  std::memcpy(words.data(), call.workspace(), words.size() * sizeof(u32));
  u32 flags = 0;
  for (std::size_t i = 1; i <= words.front() && i < words.size(); ++i) {
    flags |= words[i];
  }
  return flags;
}

/// Lengths and pages that are not there: the nearest ones that are, and the status says so.
TEST(PipelinedPages, NonsenseStaysInsideTheTensorsAndIsReported) {
  const Case on = cases().front();
  for (const auto& [used, page, flags] : {std::tuple{-1, 0, u32{lengths_clamped}},
                                          {1 << 30, 0, u32{lengths_clamped}},
                                          {130, -1, u32{pages_clamped}},
                                          {130, 1 << 30, u32{pages_clamped}},
                                          {130, 1, u32{0}}}) {
    AttentionCase host(on.problem, test::Order::heads_first, on.cu_q, on.used);
    std::fill(host.cu_seqlens_k.begin(), host.cu_seqlens_k.end(), used);
    std::fill(host.block_table.begin(), host.block_table.end(), page);
    EmulatedCall call = call_of(host, pipelined_strategy());
    const emulator::Report report = call.run(schedule(7));
    ASSERT_TRUE(report.clean()) << text_of(report);
    EXPECT_EQ(flags_of(call), flags) << used << " " << page;
    std::fill(host.cu_seqlens_k.begin(), host.cu_seqlens_k.end(),
              std::clamp(used, 0, static_cast<int>(on.problem.keys)));
    std::fill(host.block_table.begin(), host.block_table.end(),
              std::clamp(page, 0, static_cast<int>(on.problem.pages) - 1));
    const auto judgement = reference::judge_attention(host.problem, host.tensors);
    EXPECT_TRUE(judgement.passed) << judgement.evidence;
  }
}

/// A value that only later queries of a tile see is none of the earlier ones' business: they are computed again, from
/// the pages.
TEST(PipelinedPages, ANaNSpoilsNoRowThatDoesNotSeeIt) {
  const Case on = cases().front();
  AttentionCase host(on.problem, test::Order::heads_first, on.cu_q, on.used);
  host.set(host.tensors.v, 0, 350, 3, std::numeric_limits<float>::quiet_NaN());
  EmulatedCall call = call_of(host, pipelined_strategy());
  expect_right(host, call, 5);
}

/// Sequences of as many queries as the threshold, of more, of one and of none; each row is one launch's.
TEST(PipelinedPages, MixedSharesTheSequences) {
  AttentionProblem problem{.heads = 2, .kv_heads = 1, .causal = true};
  problem.page_size = 16;
  const Case on = with_lengths("", problem, {0, 1, 9, 18, 18, 90}, {200, 65, 128, 40, 72});
  AttentionCase host(on.problem, test::Order::heads_first, on.cu_q, on.used);
  EmulatedCall call = call_of(host, mixed_strategy(), {{"few_queries", "8"}, {"dependent_launch", "true"}});
  for (const std::uint64_t seed : {1, 4}) {
    std::fill(host.o.begin(), host.o.end(), AttentionCase::poison);
    expect_right(host, call, seed);
  }
}

TEST(PipelinedPages, SimpleReadsThemToo) {
  AttentionProblem problem{.heads = 2, .kv_heads = 1, .causal = true};
  problem.page_size = 7;
  const Case on = with_lengths("", problem, {0, 3, 9}, {30, 17});
  AttentionCase host(on.problem, test::Order::heads_first, on.cu_q, on.used);
  EmulatedCall call = call_of(host, simple_strategy());
  expect_right(host, call, 2);
}

}  // namespace
}  // namespace thresher::strategies::attention
