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
#include "strategies/attention/launch.hpp"
#include "strategies/attention/pipelined/device/kernel.hpp"
#include "strategies/attention/pipelined/strategy.hpp"
#include "strategies/attention/registry.hpp"
#include "strategies/attention/simple/device/kernel.hpp"
#include "strategies/attention/stream_k/device/kernel.hpp"
#include "strategies/attention/stream_k/strategy.hpp"
#include "strategies/attention/tensors.hpp"
#include "strategies/attention_flags.hpp"
#include "strategies/emulated_case.hpp"
#include "support/attention_case.hpp"

namespace thresher::strategies::attention {
namespace {

using pipeline::attention::StreamConfig;
using pipeline::attention::StreamKConfig;
using test::AttentionCase;

constexpr StreamConfig narrow_heads = stream_choice(64, 64, false, true, Codes::none, true);
constexpr StreamConfig wide_heads = stream_choice(256, 256, false, false, Codes::none, true);
constexpr StreamConfig few_queries = stream_choice(128, 64, true, true, Codes::none, true);
constexpr StreamConfig narrow_codes = stream_choice(64, 64, false, true, Codes::keys, true);
constexpr StreamConfig codes = stream_choice(128, 128, false, true, Codes::keys, true);
constexpr StreamConfig wide_codes = stream_choice(256, 256, false, false, Codes::keys, true);
constexpr StreamConfig other_codes = stream_choice(128, 256, false, true, Codes::keys, true);
constexpr StreamConfig narrow_products = stream_choice(64, 64, false, true, Codes::queries_and_keys, true);
constexpr StreamConfig products = stream_choice(128, 128, false, true, Codes::queries_and_keys, true);
constexpr StreamConfig wide_products = stream_choice(256, 256, false, false, Codes::queries_and_keys, true);
constexpr StreamConfig other_products = stream_choice(128, 64, true, true, Codes::queries_and_keys, true);
constexpr StreamConfig dense_products = stream_choice(128, 128, false, true, Codes::queries_and_keys, false);
constexpr StreamConfig whole_rows = stream_choice(128, 128, false, true, Codes::none, true);
constexpr StreamConfig with_scores_ahead(StreamConfig config) {
  config.math_warpgroups = 2;
  config.hold_softmax = true;
  config.scores_ahead = true;
  return config;
}
constexpr StreamConfig dense_products_ahead = with_scores_ahead(dense_products);
constexpr StreamConfig dense_codes = stream_choice(64, 64, false, true, Codes::keys, false);

void add_kernels() {
  static const bool added = [] {
    add_compiled_in({pipelined_expression(narrow_heads, Format::fp16, Logits::direct),
                     &host_kernel<&pipelined<narrow_heads, Half, Logits::direct>>});
    add_compiled_in({pipelined_expression(wide_heads, Format::bf16, Logits::general),
                     &host_kernel<&pipelined<wide_heads, BFloat16, Logits::general>>});
    add_compiled_in({pipelined_expression(few_queries, Format::fp16, Logits::direct),
                     &host_kernel<&pipelined<few_queries, Half, Logits::direct>>});
    add_compiled_in({pipelined_expression(narrow_codes, Format::fp16, Logits::direct),
                     &host_kernel<&pipelined<narrow_codes, Half, Logits::direct>>});
    add_compiled_in({pipelined_expression(codes, Format::bf16, Logits::direct),
                     &host_kernel<&pipelined<codes, BFloat16, Logits::direct>>});
    add_compiled_in({pipelined_expression(wide_codes, Format::bf16, Logits::general),
                     &host_kernel<&pipelined<wide_codes, BFloat16, Logits::general>>});
    add_compiled_in({pipelined_expression(other_codes, Format::fp16, Logits::direct),
                     &host_kernel<&pipelined<other_codes, Half, Logits::direct>>});
    add_compiled_in({pipelined_expression(narrow_products, Format::fp16, Logits::direct),
                     &host_kernel<&pipelined<narrow_products, Half, Logits::direct>>});
    add_compiled_in({pipelined_expression(products, Format::bf16, Logits::direct),
                     &host_kernel<&pipelined<products, BFloat16, Logits::direct>>});
    add_compiled_in({pipelined_expression(wide_products, Format::bf16, Logits::general),
                     &host_kernel<&pipelined<wide_products, BFloat16, Logits::general>>});
    add_compiled_in({pipelined_expression(other_products, Format::fp16, Logits::direct),
                     &host_kernel<&pipelined<other_products, Half, Logits::direct>>});
    add_compiled_in({pipelined_expression(dense_products, Format::bf16, Logits::direct),
                     &host_kernel<&pipelined<dense_products, BFloat16, Logits::direct>>});
    add_compiled_in({pipelined_expression(whole_rows, Format::bf16, Logits::direct),
                     &host_kernel<&pipelined<whole_rows, BFloat16, Logits::direct>>});
    add_compiled_in({pipelined_expression(dense_products_ahead, Format::bf16, Logits::direct),
                     &host_kernel<&pipelined<dense_products_ahead, BFloat16, Logits::direct>>});
    add_compiled_in({pipelined_expression(dense_codes, Format::fp16, Logits::direct),
                     &host_kernel<&pipelined<dense_codes, Half, Logits::direct>>});
    constexpr StreamKConfig decode_codes = with_stages(stream_k_choice(64, 64, 1, 64, true), 5, 227 * 1024);
    add_compiled_in({stream_k_expression(decode_codes, {Format::fp16, Format::fp16, Format::fp8_e4m3}, Logits::direct),
                     &host_kernel<&stream_k<decode_codes, Half, E4M3, Logits::direct>>});
    add_compiled_in(
        {merge_parts_expression(decode_codes, {Format::fp16, Format::fp16, Format::fp8_e4m3}, Logits::direct),
         &host_kernel<&merge_parts<decode_codes, Half, E4M3, Logits::direct>>});
    add_compiled_in({simple_expression({Format::bf16, Format::bf16, Format::fp8_e4m3}, 192, 64),
                     &host_kernel<&simple<BFloat16, 192, 64, E4M3>>});
    constexpr StreamKConfig decode = with_stages(stream_k_choice(64, 64, 2, 64, true), 5, 227 * 1024);
    add_compiled_in({stream_k_expression(decode, {Format::fp16}, Logits::direct),
                     &host_kernel<&stream_k<decode, Half, Half, Logits::direct>>});
    add_compiled_in({merge_parts_expression(decode, {Format::fp16}, Logits::direct),
                     &host_kernel<&merge_parts<decode, Half, Half, Logits::direct>>});
    add_compiled_in({simple_expression({Format::fp16}, 64, 64), &host_kernel<&simple<Half, 64, 64>>});
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
  AttentionProblem rows{.heads = 2, .kv_heads = 2, .head_dim = 128, .format = Format::bf16, .causal = true};
  for (const int page : {16, 24}) {
    rows.page_size = page;
    all.push_back(with_lengths(page == 16 ? "whole_rows" : "whole_rows_of_odd_pages", rows, {0, 140, 150}, {410, 81}));
  }
  AttentionProblem narrow_fp8 = chunks;
  narrow_fp8.kv_format = Format::fp8_e4m3;
  all.push_back(with_lengths("fp8_narrow_heads", narrow_fp8, {0, 90, 90, 93, 100}, {390, 65, 128, 0}));
  AttentionProblem fp8{.heads = 2, .kv_heads = 2, .head_dim = 128, .format = Format::bf16, .causal = true};
  fp8.kv_format = Format::fp8_e4m3;
  fp8.page_size = 16;
  all.push_back(with_lengths("fp8", fp8, {0, 140, 150}, {700, 81}));
  AttentionProblem wide_fp8 = wide;
  wide_fp8.kv_format = Format::fp8_e4m3;
  all.push_back(with_lengths("fp8_wide_heads_window_softcap", wide_fp8, {0, 70, 75}, {250, 81}));
  AttentionProblem other_fp8 = few;
  other_fp8.value_dim = 256;
  other_fp8.kv_format = Format::fp8_e4m3;
  other_fp8.page_size = 8;
  all.push_back(with_lengths("fp8_other_values_small_pages", other_fp8, {0, 5, 75}, {300, 130}));
  // The same with queries in FP8.
  narrow_fp8.q_format = fp8.q_format = wide_fp8.q_format = Format::fp8_e4m3;
  all.push_back(with_lengths("fp8_queries_narrow_heads", narrow_fp8, {0, 90, 90, 93, 100}, {390, 65, 128, 0}));
  all.push_back(with_lengths("fp8_queries", fp8, {0, 140, 150}, {700, 81}));
  all.push_back(with_lengths("fp8_queries_wide_heads_window_softcap", wide_fp8, {0, 70, 75}, {250, 81}));
  AttentionProblem few_fp8 = few;
  few_fp8.kv_format = few_fp8.q_format = Format::fp8_e4m3;
  all.push_back(with_lengths("fp8_queries_few_large_pages", few_fp8, {0, 5, 40}, {300, 130},
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

/// Offsets that make no sense: sequences begin at the greatest so far, so that none has another's queries, and the
/// status says so. Of `mixed`, both launches see them so.
TEST(PipelinedPages, OffsetsThatDecreaseShareNoQueryAndAreReported) {
  struct Offsets {
    std::vector<i32> given;
    std::vector<i32> taken;
  };
  constexpr i32 far = std::numeric_limits<i32>::max();
  std::vector<Offsets> all{{{0, 1, 90, 2, 90}, {0, 1, 90, 90, 90}},
                           {{-far - 1, 1, 30, 20, far}, {0, 1, 30, 30, 90}},
                           {{-5, 70, far, -far, 3}, {0, 70, 90, 90, 90}}};
  Offsets many{{0}, {0}};  // up and down over more sequences than a warp has lanes
  for (int i = 0; i < 40; ++i) {
    many.given.push_back(i % 2 == 0 ? (i == 38 ? 90 : i / 2) : 0);
    many.taken.push_back(std::max(many.taken.back(), many.given.back()));
  }
  for (const Strategy<AttentionProblem>* strategy : {&mixed_strategy(), &pipelined_strategy()}) {
    if (strategy == &pipelined_strategy()) {
      all.push_back(many);
    }
    for (const Offsets& offsets : all) {
      AttentionProblem problem{.heads = 2, .kv_heads = 1, .causal = true};
      problem.page_size = 16;
      const Case on = with_lengths("", problem, offsets.taken, std::vector<i32>(offsets.given.size() - 1, 70));
      AttentionCase host(on.problem, test::Order::heads_first, on.cu_q, on.used);
      EmulatedCall call = call_of(host, *strategy);
      host.cu_seqlens_q = offsets.given;
      const emulator::Report report = call.run(schedule(4));
      ASSERT_TRUE(report.clean()) << text_of(report);
      EXPECT_EQ(flags_of(call), u32{offsets_clamped}) << strategy->name();
      host.cu_seqlens_q = offsets.taken;
      const auto judgement = reference::judge_attention(host.problem, host.tensors);
      EXPECT_TRUE(judgement.passed) << strategy->name() << ": " << judgement.evidence;
    }
  }
}

/// A launch tells of the lengths of all sequences, also of those that are not its own.
TEST(PipelinedPages, LengthsOfSequencesWithoutQueriesAreReported) {
  const Case on = with_lengths("", {.heads = 2, .kv_heads = 1, .page_size = 16}, {0, 70, 70}, {200, 40});
  AttentionCase host(on.problem, test::Order::heads_first, on.cu_q, on.used);
  EmulatedCall call = call_of(host, pipelined_strategy());
  host.cu_seqlens_k[1] = -1;
  const emulator::Report report = call.run(schedule(2));
  ASSERT_TRUE(report.clean()) << text_of(report);
  EXPECT_EQ(flags_of(call), u32{lengths_clamped});
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

AttentionProblem with_codes(AttentionProblem problem) {
  problem.kv_format = Format::fp8_e4m3;
  return problem;
}

TEST(PipelinedPages, MixedSharesTheSequencesOfCodes) {
  const AttentionProblem problem = with_codes({.heads = 2, .kv_heads = 1, .causal = true, .page_size = 16});
  const Case on = with_lengths("", problem, {0, 1, 9, 18, 18, 90}, {200, 65, 128, 40, 72});
  AttentionCase host(on.problem, test::Order::heads_first, on.cu_q, on.used);
  EmulatedCall call = call_of(host, mixed_strategy(), {{"few_queries", "8"}, {"dependent_launch", "true"}});
  for (const std::uint64_t seed : {1, 4}) {
    std::fill(host.o.begin(), host.o.end(), AttentionCase::poison);
    expect_right(host, call, seed);
  }
}

/// Of a code that is a NaN in a value: rows that do not see it are computed again, from the codes.
TEST(PipelinedPages, ACodeThatIsNaNSpoilsNoRowThatDoesNotSeeIt) {
  const AttentionProblem problem = with_codes({.heads = 2, .kv_heads = 1, .causal = true, .page_size = 16});
  const Case on = with_lengths("", problem, {0, 90}, {390});
  AttentionCase host(on.problem, test::Order::heads_first, on.cu_q, on.used);
  const reference::Sequence first = reference::sequence(host.problem, host.tensors, 0);
  constexpr std::uint8_t code_of_nan = 0x7F;
  host.v_codes[static_cast<std::size_t>(
      reference::KeyRows(host.problem, host.tensors, host.tensors.v, first, 0, 0).offset(350) + 3)] = code_of_nan;
  EmulatedCall call = call_of(host, pipelined_strategy());
  expect_right(host, call, 5);
}

/// Without pages too, with queries in FP8 and in 16 bits: sequences of several lengths, and a batch of one.
TEST(PipelinedPages, CodesWithoutPagesAreRight) {
  const Knobs ahead{{"math_warpgroups", "2"}, {"hold_softmax", "1"}, {"scores_ahead", "1"}};
  for (const auto& [has_fp8_queries, knobs] : {std::pair{true, Knobs{}}, {true, ahead}, {false, Knobs{}}}) {
    AttentionProblem problem =
        with_codes({.batch = 2, .heads = 2, .kv_heads = 1, .queries = 140, .keys = 300, .causal = true});
    if (has_fp8_queries) {
      problem.q_format = Format::fp8_e4m3;
      problem.head_dim = 128;
      problem.format = Format::bf16;
    }
    AttentionCase fixed(problem, test::Order::rows_first);
    EmulatedCall fixed_call = call_of(fixed, pipelined_strategy(), knobs);
    expect_right(fixed, fixed_call, 3);
    problem.variable_length = true;
    AttentionCase lengths(problem, test::Order::heads_first, {0, 133, 140}, {0, 290, 300});
    EmulatedCall lengths_call = call_of(lengths, pipelined_strategy(), knobs);
    expect_right(lengths, lengths_call, 8);
  }
}

/// Keys or values of the case, so many rows more from a page to the next.
std::vector<std::uint16_t> move_apart(Tensor& tensor, std::int64_t rows) {
  const std::int64_t page = tensor.strides[0];
  const std::int64_t apart = page + rows * tensor.strides[1];
  std::vector<std::uint16_t> storage(static_cast<std::size_t>(tensor.shape[0] * apart));
  for (std::int64_t i = 0; i < tensor.shape[0]; ++i) {
    std::copy_n(static_cast<const std::uint16_t*>(tensor.data) + i * page, page,
                storage.begin() + static_cast<std::ptrdiff_t>(i * apart));
  }
  tensor.data = storage.data();
  tensor.strides[0] = apart;
  return storage;
}

/// Pages that are no whole number of groups of 8 rows apart, keys or values alone, come in boxes of 8 rows.
TEST(PipelinedPages, WholeRowsOfPagesThatAreApartAreRight) {
  AttentionProblem problem{.heads = 1, .kv_heads = 1, .head_dim = 128, .format = Format::bf16, .causal = true};
  problem.page_size = 16;
  const Case on = with_lengths("", problem, {0, 70}, {150});
  for (const auto& [keys, values] : {std::pair{8, 8}, {8, 16}, {1, 1}, {0, 3}}) {
    AttentionCase host(on.problem, test::Order::heads_first, on.cu_q, on.used);
    const auto kept_keys = move_apart(host.tensors.k, keys);
    const auto kept_values = move_apart(host.tensors.v, values);
    EXPECT_EQ(page_groups(host.tensors.k), keys == 1 ? 0 : 2 + keys / 8);
    EmulatedCall call = call_of(host, pipelined_strategy());
    expect_right(host, call, 6);
  }
}

/// A descale of 0 makes all logits 0, also beside keys that are not seen; the largest and the smallest come through.
TEST(PipelinedPages, DescalesAtTheirLimitsAreApplied) {
  const AttentionProblem problem = with_codes({.heads = 2, .kv_heads = 2, .causal = true, .page_size = 16});
  const Case on = with_lengths("", problem, {0, 70, 80, 90}, {150, 40, 33});
  AttentionCase host(on.problem, test::Order::heads_first, on.cu_q, on.used);
  host.k_descale = {0.0F, 1e-30F, 1.0F, 0.0F, 30.0F, 1e-3F};
  host.v_descale = {1.0F, 0.0F, 100.0F, 1.0F, 1e-4F, 1.0F};
  EmulatedCall call = call_of(host, pipelined_strategy());
  expect_right(host, call, 6);
}

/// A row of one head may have other heads' rows on both sides: a wider piece of memory would bring what nobody reads.
TEST(PipelinedPages, CopiesBringNoNeighbourToL2) {
  const Case on = cases().front();
  const AttentionCase host(on.problem, test::Order::heads_first, on.cu_q, on.used);
  EXPECT_EQ(page_map(host.tensors.k, 16, 1).promotion, machine::Promotion::b128);
}

TEST(PipelinedPages, SimpleReadsCodesInPagesAndWithout) {
  AttentionProblem problem =
      with_codes({.heads = 2, .kv_heads = 1, .head_dim = 192, .value_dim = 64, .format = Format::bf16, .causal = true});
  problem.page_size = 7;
  const Case on = with_lengths("", problem, {0, 3, 9}, {30, 17});
  AttentionCase host(on.problem, test::Order::heads_first, on.cu_q, on.used);
  EmulatedCall call = call_of(host, simple_strategy());
  expect_right(host, call, 2);
  problem.page_size = 0;
  problem.batch = 2;
  problem.queries = 9;
  problem.keys = 21;
  AttentionCase plain(problem, test::Order::rows_first);
  EmulatedCall plain_call = call_of(plain, simple_strategy());
  expect_right(plain, plain_call, 2);
}

TEST(PipelinedPages, SimpleStaysInsideTheTensorsWhateverTheLengths) {
  AttentionProblem problem{.heads = 2, .kv_heads = 1, .causal = true};
  problem.page_size = 7;
  const Case on = with_lengths("", problem, {0, 3, 9}, {30, 17});
  for (const int used : {-1, 1 << 30}) {
    AttentionCase host(on.problem, test::Order::heads_first, on.cu_q, on.used);
    std::fill(host.cu_seqlens_k.begin(), host.cu_seqlens_k.end(), used);
    EmulatedCall call = call_of(host, simple_strategy());
    const emulator::Report report = call.run(schedule(7));
    ASSERT_TRUE(report.clean()) << text_of(report);
    std::fill(host.cu_seqlens_k.begin(), host.cu_seqlens_k.end(),
              std::clamp(used, 0, static_cast<int>(on.problem.keys)));
    const auto judgement = reference::judge_attention(host.problem, host.tensors);
    EXPECT_TRUE(judgement.passed) << judgement.evidence;
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
