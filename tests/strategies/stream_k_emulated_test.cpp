// Attention over keys in pages in the emulator: right on every schedule, and nothing of what the lengths, the table or
// the pool hold beyond what is used comes through.
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
#include "strategies/attention/registry.hpp"
#include "strategies/attention/stream_k/device/kernel.hpp"
#include "strategies/attention/stream_k/strategy.hpp"
#include "strategies/attention/tensors.hpp"
#include "strategies/attention_flags.hpp"
#include "strategies/emulated_case.hpp"
#include "support/attention_case.hpp"

namespace thresher::strategies::attention {
namespace {

using pipeline::attention::StreamKConfig;
using test::AttentionCase;

template <StreamKConfig config, class Element, class KeyElement, Logits logits, class QueryElement = Element>
void add(Format format) {
  const KernelFormats formats{format, machine::is_same<QueryElement, E4M3> ? Format::fp8_e4m3 : format,
                              machine::is_same<KeyElement, E4M3> ? Format::fp8_e4m3 : format};
  add_compiled_in({stream_k_expression(config, formats, logits),
                   &host_kernel<&stream_k<config, Element, KeyElement, logits, QueryElement>>});
  if constexpr (!config.is_clustered()) {
    add_compiled_in({merge_parts_expression(config, formats, logits),
                     &host_kernel<&merge_parts<config, Element, KeyElement, logits, QueryElement>>});
  }
}

/// A ring of two slots, so that small problems go round it.
constexpr StreamKConfig small(StreamKConfig config) {
  config.warps = 4;
  config.stages = 2;
  return config;
}

constexpr StreamKConfig wide_keys = small(stream_k_choice(64, 64, 2, 8, true));
constexpr StreamKConfig narrow_keys = small(stream_k_choice(64, 64, 1, 8, true));
constexpr StreamKConfig paired_heads = [] {
  StreamKConfig config = narrow_keys;
  config.heads = heads_of_chunk(config);
  return config;
}();
static_assert(paired_heads.heads == 2);
constexpr StreamKConfig other_values = small(stream_k_choice(128, 64, 2, 16, false));
constexpr StreamKConfig narrow_values = small(stream_k_choice(64, 128, 1, 8, false));

constexpr StreamKConfig with_cluster(StreamKConfig config, int cluster) {
  config.cluster = cluster;
  return config;
}

constexpr StreamKConfig cluster_wide_keys = with_cluster(wide_keys, 4);
constexpr StreamKConfig cluster_narrow_keys = with_cluster(narrow_keys, 2);
constexpr StreamKConfig cluster_paired_heads = with_cluster(paired_heads, 4);
constexpr StreamKConfig cluster_other_values = with_cluster(other_values, 16);
constexpr StreamKConfig cluster_narrow_values = with_cluster(narrow_values, 8);

/// The kernels of clusters with one tile each, and of clusters with several.
template <StreamKConfig config, class Element, class KeyElement, Logits logits>
void add_clusters(Format format) {
  constexpr StreamKConfig single = [] {
    StreamKConfig of = config;
    of.single_tiles = true;
    return of;
  }();
  add<config, Element, KeyElement, logits>(format);
  add<single, Element, KeyElement, logits>(format);
}

void add_kernels() {
  static const bool added = [] {
    add<wide_keys, Half, Half, Logits::direct>(Format::fp16);
    add<narrow_keys, BFloat16, E4M3, Logits::direct>(Format::bf16);
    add<narrow_keys, BFloat16, E4M3, Logits::direct, E4M3>(Format::bf16);
    add<paired_heads, BFloat16, E4M3, Logits::direct>(Format::bf16);
    add<other_values, BFloat16, BFloat16, Logits::general>(Format::bf16);
    add<narrow_values, Half, E4M3, Logits::direct>(Format::fp16);
    add<narrow_values, Half, E4M3, Logits::direct, E4M3>(Format::fp16);
    add_clusters<cluster_wide_keys, Half, Half, Logits::direct>(Format::fp16);
    add_clusters<cluster_narrow_keys, BFloat16, E4M3, Logits::direct>(Format::bf16);
    add_clusters<cluster_paired_heads, BFloat16, E4M3, Logits::direct>(Format::bf16);
    add_clusters<cluster_other_values, BFloat16, BFloat16, Logits::general>(Format::bf16);
    add_clusters<cluster_narrow_values, Half, E4M3, Logits::direct>(Format::fp16);
    return true;
  }();
  static_cast<void>(added);
}

Knobs knobs_of(const StreamKConfig& config) {
  return {{"rows", std::to_string(config.rows)},     {"warps", std::to_string(config.warps)},
          {"stages", std::to_string(config.stages)}, {"boxes", config.boxes ? "true" : "false"},
          {"heads", std::to_string(config.heads)},   {"cluster", std::to_string(config.cluster)}};
}

EmulatedCall call_of(AttentionCase& host, const StreamKConfig& config, const DeviceSpec& device = device_spec("H200")) {
  add_kernels();
  std::vector<NamedTensor> named;
  const auto tensors = in_order(host.tensors);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    named.push_back({tensor_names[i], tensors[i]});
  }
  return {stream_k_strategy().plan(host.problem, knobs_of(config), device), std::move(named), test::compiled_in_kernel};
}

emulator::Options schedule(std::uint64_t seed) {
  emulator::Options options;
  options.schedule = emulator::Schedule::from_seed(seed);
  return options;
}

struct Case {
  std::string name;
  AttentionProblem problem;
  StreamKConfig config;
  std::vector<std::int32_t> cu_q;
  std::vector<std::int32_t> used;
  DeviceSpec device = device_spec("H200");
};

/// So few clusters that each has several tiles.
Case on_few_clusters(Case on) {
  on.name += "_on_few";
  on.device.resident_clusters = {3, 2, 1};
  return on;
}

AttentionProblem paged(std::int64_t group, std::int64_t head_dim, std::int64_t page, Format format) {
  AttentionProblem problem{.batch = 4, .heads = 2 * group, .kv_heads = 2, .head_dim = head_dim, .format = format};
  problem.variable_length = true;
  problem.causal = true;
  problem.page_size = page;
  return problem;
}

/// Fills in what follows from the lengths.
Case with_lengths(std::string name, AttentionProblem problem, const StreamKConfig& config,
                  std::vector<std::int32_t> cu_q, std::vector<std::int32_t> used) {
  problem.batch = static_cast<std::int64_t>(used.size());
  problem.queries = cu_q.back();
  problem.keys = *std::max_element(used.begin(), used.end()) + 3;
  problem.pages = 2;
  for (const std::int32_t keys : used) {
    problem.pages += ceil_div(std::int64_t{keys}, problem.page_size);
  }
  return {std::move(name), problem, config, std::move(cu_q), std::move(used)};
}

// Held by two launches and by clusters.
Case window_of_several_tiles(std::string name, const StreamKConfig& config) {
  AttentionProblem p = paged(2, 64, 8, Format::bf16);
  p.kv_format = Format::fp8_e4m3;
  p.window_left = 70;
  return with_lengths(std::move(name), p, config, {0, 1, 1, 11, 12}, {150, 40, 130, 4});
}

Case pairs_of_heads_alike(std::string name, const StreamKConfig& config) {
  AttentionProblem p = paged(3, 64, 16, Format::bf16);
  p.heads = 12;
  p.kv_heads = 4;
  p.kv_format = Format::fp8_e4m3;
  p.sinks = true;
  return with_lengths(std::move(name), p, config, {0, 1, 2}, {250, 225});
}

Case single_rows(std::string name, const StreamKConfig& config) {
  AttentionProblem p = paged(3, 128, 1, Format::bf16);
  p.value_dim = 64;
  p.softcap = 2.0F;
  return with_lengths(std::move(name), p, config, {0, 4, 5}, {170, 33});
}

Case pages_of_twelve(std::string name, const StreamKConfig& config) {
  AttentionProblem p = paged(1, 64, 12, Format::fp16);
  p.value_dim = 128;
  p.kv_format = Format::fp8_e4m3;
  p.causal = false;
  p.sinks = true;
  return with_lengths(std::move(name), p, config, {0, 3, 4}, {70, 129});
}

Case with_fp8_queries(std::string name, Case on) {
  on.name = std::move(name);
  on.problem.q_format = Format::fp8_e4m3;
  return on;
}

std::vector<Case> cases() {
  std::vector<Case> all;
  AttentionProblem p = paged(4, 64, 16, Format::fp16);
  p.sinks = true;
  all.push_back(with_lengths("decode", p, wide_keys, {0, 1, 2, 3, 4}, {300, 1, 0, 65}));
  all.push_back(with_lengths("decode_alike_with_a_block_idle", p, wide_keys, {0, 1}, {190}));
  p.heads = 4;
  p.kv_heads = 1;
  all.push_back(with_lengths("decode_alike_and_whole", p, wide_keys, {0, 1, 2, 3, 4, 5}, {66, 128, 100, 65, 127}));
  all.push_back(window_of_several_tiles("fp8_window_several_tiles", narrow_keys));
  all.push_back(window_of_several_tiles("fp8_pairs_of_heads", paired_heads));
  all.push_back(pairs_of_heads_alike("fp8_pairs_of_heads_alike", paired_heads));
  all.push_back(single_rows("single_rows_softcap", other_values));
  all.push_back(pages_of_twelve("fp8_pages_of_twelve", narrow_values));
  all.push_back(with_fp8_queries("fp8_queries_several_tiles", window_of_several_tiles("", narrow_keys)));
  all.push_back(with_fp8_queries("fp8_queries_pages_of_twelve", pages_of_twelve("", narrow_values)));
  return all;
}

Case clustered(Case on) {
  on.config = cluster_wide_keys;
  return on;
}

/// Sequences of as many queries each.
Case alike_queries(std::string name, const AttentionProblem& problem, const StreamKConfig& config, std::int32_t queries,
                   std::vector<std::int32_t> used) {
  std::vector<std::int32_t> cu_q;
  for (std::size_t i = 0; i <= used.size(); ++i) {
    cu_q.push_back(static_cast<std::int32_t>(i) * queries);
  }
  return with_lengths(std::move(name), problem, config, std::move(cu_q), std::move(used));
}

/// Clusters that have a tile and clusters that have several: more chunks than blocks, fewer, none, and tiles that see
/// different ones.
std::vector<Case> clustered_cases() {
  std::vector<Case> all;
  AttentionProblem p = paged(4, 64, 16, Format::fp16);
  p.sinks = true;
  all.push_back(with_lengths("cluster_of_one_sequence", p, cluster_wide_keys, {0, 1}, {390}));
  all.push_back(with_lengths("cluster_of_few_chunks", p, cluster_wide_keys, {0, 1}, {100}));
  all.push_back(with_lengths("cluster_of_several_lengths", p, cluster_wide_keys, {0, 1, 2, 3, 4}, {300, 1, 0, 65}));
  all.push_back(window_of_several_tiles("cluster_fp8_several_tiles", cluster_narrow_keys));
  all.push_back(pairs_of_heads_alike("cluster_fp8_pairs_of_heads", cluster_paired_heads));
  all.push_back(single_rows("cluster_single_rows_softcap", cluster_other_values));
  all.push_back(pages_of_twelve("cluster_fp8_pages_of_twelve", cluster_narrow_values));
  for (std::size_t i = 2, alone = all.size(); i < alone; ++i) {
    all.push_back(on_few_clusters(all[i]));
  }
  p.sinks = false;
  all.push_back(on_few_clusters(alike_queries("cluster_of_tiles_alike", p, cluster_wide_keys, 1, {250, 225, 256})));
  all.push_back(
      on_few_clusters(alike_queries("cluster_of_speculative_tokens", p, cluster_wide_keys, 3, {70, 400, 3, 190})));
  std::vector<std::int32_t> many;
  for (std::int32_t i = 0; i < 130; ++i) {
    many.push_back(i * 37 % 70);
  }
  p.heads = 4;
  p.kv_heads = 1;
  all.push_back(on_few_clusters(alike_queries("cluster_of_many_sequences", p, cluster_wide_keys, 1, many)));
  return all;
}

std::string text_of(const emulator::Report& report) {
  std::string text;
  for (const emulator::Finding& finding : report.findings) {
    text += to_string(finding);
  }
  return text;
}

class StreamKEmulated : public testing::TestWithParam<Case> {};

TEST_P(StreamKEmulated, IsRightAndTheSameOnEverySchedule) {
  AttentionCase host(GetParam().problem, test::Order::heads_first, GetParam().cu_q, GetParam().used);
  EmulatedCall call = call_of(host, GetParam().config, GetParam().device);
  std::vector<std::uint16_t> first;
  for (const std::uint64_t seed : {0, 1, 2, 3, 17}) {
    std::fill(host.o.begin(), host.o.end(), AttentionCase::poison);
    const emulator::Report report = call.run(schedule(seed));
    ASSERT_TRUE(report.clean()) << text_of(report);
    if (first.empty()) {
      first = host.o;
      const auto judgement = reference::judge_attention(host.problem, host.tensors);
      EXPECT_TRUE(judgement.passed) << judgement.evidence;
    }
    EXPECT_EQ(host.o, first) << seed;
  }
}

/// A sequence of one query, alone and among others, on a card that has fewer clusters than tiles.
TEST(StreamK, ATileWithAClusterOfItsOwnHasTheBitsItHasAlone) {
  add_kernels();
  const Case on = on_few_clusters(
      alike_queries("", paged(4, 64, 16, Format::fp16), cluster_wide_keys, 1, {300, 1, 65, 0, 190, 128, 257}));
  AttentionCase host(on.problem, test::Order::heads_first, on.cu_q, on.used);
  Knobs knobs = knobs_of(on.config);
  knobs.set("single_tiles", "true");
  const auto run = [&](std::int64_t first, std::int64_t count) {
    const auto rows = [&](Tensor tensor, std::int64_t from, std::int64_t extent) {
      tensor.data = static_cast<std::byte*>(tensor.data) + from * tensor.strides[0] * thresher::bits(tensor.format) / 8;
      tensor.shape[0] = extent;
      return tensor;
    };
    AttentionProblem own = on.problem;
    own.batch = own.queries = count;
    AttentionTensors of = host.tensors;
    of.q = rows(of.q, first, count);
    of.o = rows(of.o, first, count);
    of.lse = {};
    of.cu_seqlens_q = rows(of.cu_seqlens_q, 0, count + 1);
    of.seqused_k = rows(of.seqused_k, first, count);
    of.block_table = rows(of.block_table, first, count);
    std::vector<NamedTensor> named;
    const auto tensors = in_order(of);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      named.push_back({tensor_names[i], tensors[i]});
    }
    EmulatedCall call(stream_k_strategy().plan(own, knobs, on.device), std::move(named), test::compiled_in_kernel);
    const emulator::Report report = call.run(schedule(3));
    EXPECT_TRUE(report.clean()) << text_of(report);
    const auto row = static_cast<std::ptrdiff_t>(host.o.size()) / static_cast<std::ptrdiff_t>(on.used.size());
    return std::vector(host.o.begin() + first * row, host.o.begin() + (first + count) * row);
  };
  const std::vector<std::uint16_t> all = run(0, on.problem.batch);
  for (std::int64_t i = 0; i < on.problem.batch; ++i) {
    const std::vector<std::uint16_t> alone = run(i, 1);
    EXPECT_TRUE(std::equal(alone.begin(), alone.end(), all.begin() + i * static_cast<std::ptrdiff_t>(alone.size())))
        << i;
  }
}

/// A value that only the later queries of a tile see is none of the earlier ones' business, and neither are keys and
/// values before a window.
TEST(StreamK, ANaNSpoilsNoRowThatDoesNotSeeIt) {
  AttentionProblem p = paged(2, 64, 16, Format::fp16);
  p.window_left = 20;
  for (const StreamKConfig& config : {wide_keys, cluster_wide_keys}) {
    const Case on = with_lengths("", p, config, {0, 4}, {200});
    AttentionCase host(on.problem, test::Order::heads_first, on.cu_q, on.used);
    const float nan = std::numeric_limits<float>::quiet_NaN();
    for (std::int64_t row = 0; row < 170; ++row) {
      host.set(host.tensors.v, 0, row, -1, nan);
      host.set(host.tensors.k, 1, row, -1, nan);
    }
    host.set(host.tensors.v, 0, 199, 3, nan);
    host.set(host.tensors.v, 1, 178, -1, nan);
    EmulatedCall call = call_of(host, on.config);
    const emulator::Report report = call.run(schedule(5));
    ASSERT_TRUE(report.clean()) << text_of(report);
    const auto judgement = reference::judge_attention(host.problem, host.tensors);
    EXPECT_TRUE(judgement.passed) << judgement.evidence;
  }
}

/// Logits so far apart that a row's shift moves from chunk to chunk, and what was summed up with it; and more pages
/// than a loading warp knows at a time.
TEST(StreamK, ShiftsFollowTheLogitsOfManyPages) {
  AttentionProblem narrow = paged(2, 64, 8, Format::bf16);
  narrow.kv_format = Format::fp8_e4m3;
  narrow.window_left = 70;
  for (const Case& on : {with_lengths("", paged(4, 64, 8, Format::fp16), wide_keys, {0, 1, 2}, {500, 260}),
                         with_lengths("", narrow, narrow_keys, {0, 1, 1, 11, 12}, {150, 40, 130, 4})}) {
    AttentionCase host(on.problem, test::Order::heads_first, on.cu_q, on.used);
    AttentionCase::multiply(host.q, on.problem.format, 16.0F);
    EmulatedCall call = call_of(host, on.config);
    const emulator::Report report = call.run(schedule(8));
    ASSERT_TRUE(report.clean()) << text_of(report);
    const auto judgement = reference::judge_attention(host.problem, host.tensors);
    EXPECT_TRUE(judgement.passed) << judgement.evidence;
  }
}

/// What the workspace holds is nothing to a call, whatever its lengths.
TEST(StreamK, EveryCallFollowsItsOwnLengths) {
  for (Case on : {cases().front(), clustered(cases().front()), on_few_clusters(clustered(cases().front()))}) {
    AttentionCase host(on.problem, test::Order::heads_first, on.cu_q, on.used);
    EmulatedCall call = call_of(host, on.config, on.device);
    for (const std::vector<std::int32_t>& used :
         {on.used, {300, 1, 0, 0}, {64, 0, 0, 65}, {1, 1, 0, 1}, {0, 0, 0, 0}, {63, 1, 0, 64}, on.used}) {
      host.cu_seqlens_k = used;
      std::memset(const_cast<std::byte*>(call.workspace()), 0x3C, call.planned().workspace_bytes());
      std::fill(host.o.begin(), host.o.end(), AttentionCase::poison);
      const emulator::Report report = call.run(schedule(6));
      ASSERT_TRUE(report.clean()) << text_of(report);
      const auto judgement = reference::judge_attention(host.problem, host.tensors);
      EXPECT_TRUE(judgement.passed) << judgement.evidence;
      EXPECT_EQ(flags_of(call), 0U);
    }
  }
}

/// A cluster may be there and no tile for it, where fewer queries are used than the call may have.
TEST(StreamK, AClusterWithoutATileHasNothingToDo) {
  const Case on = with_lengths("", paged(4, 64, 16, Format::fp16), cluster_wide_keys, {0, 1, 2, 3, 9}, {300, 1, 0, 65});
  AttentionCase host(on.problem, test::Order::heads_first, on.cu_q, on.used);
  host.cu_seqlens_q = {0, 1, 1, 1, 2};
  EmulatedCall call = call_of(host, on.config);
  const emulator::Report report = call.run(schedule(6));
  ASSERT_TRUE(report.clean()) << text_of(report);
  EXPECT_EQ(flags_of(call), 0U);
  const auto judgement = reference::judge_attention(host.problem, host.tensors);
  EXPECT_TRUE(judgement.passed) << judgement.evidence;
}

/// Lengths and pages that are not there: the nearest ones that are, and the status says so.
TEST(StreamK, NonsenseStaysInsideTheTensorsAndIsReported) {
  Case on = cases().front();
  for (const auto& [config, used, page, flags] : {std::tuple{wide_keys, -1, 0, u32{lengths_clamped}},
                                                  {wide_keys, 1 << 30, 0, u32{lengths_clamped}},
                                                  {wide_keys, 5, -1, u32{pages_clamped}},
                                                  {wide_keys, 5, 1 << 30, u32{pages_clamped}},
                                                  {wide_keys, -1, -1, u32{lengths_clamped}},
                                                  {cluster_wide_keys, 1 << 30, 0, u32{lengths_clamped}},
                                                  {cluster_wide_keys, 300, 1 << 30, u32{pages_clamped}}}) {
    on.config = config;
    AttentionCase host(on.problem, test::Order::heads_first, on.cu_q, on.used);
    std::fill(host.cu_seqlens_k.begin(), host.cu_seqlens_k.end(), used);
    std::fill(host.block_table.begin(), host.block_table.end(), page);
    EmulatedCall call = call_of(host, on.config);
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
/// status says so.
TEST(StreamK, OffsetsThatDecreaseShareNoQueryAndAreReported) {
  struct Offsets {
    std::vector<std::int32_t> given;
    std::vector<std::int32_t> taken;
  };
  std::vector<Offsets> all{{{0, 4, 0, 2, 4}, {0, 4, 4, 4, 4}},
                           {{-7, 2, 1, 1 << 30, 3}, {0, 2, 2, 4, 4}},
                           {{0, 1, 2, 3, 1 << 30}, {0, 1, 2, 3, 4}},
                           {{std::numeric_limits<std::int32_t>::min(), 1, 2, 3, 4}, {0, 1, 2, 3, 4}}};
  Offsets many{{0}, {0}};  // up and down over more sequences than a warp has lanes
  for (int i = 0; i < 40; ++i) {
    many.given.push_back(i % 2 == 0 ? (i == 38 ? 4 : i / 13) : 0);
    many.taken.push_back(std::max(many.taken.back(), many.given.back()));
  }
  all.push_back(many);
  for (const Offsets& offsets : all) {
    const std::vector<std::int32_t> used(offsets.given.size() - 1, 70);
    const Case on = with_lengths("", paged(4, 64, 16, Format::fp16), wide_keys, offsets.taken, used);
    AttentionCase host(on.problem, test::Order::heads_first, on.cu_q, on.used);
    EmulatedCall call = call_of(host, on.config);
    host.cu_seqlens_q = offsets.given;
    const emulator::Report report = call.run(schedule(4));
    ASSERT_TRUE(report.clean()) << text_of(report);
    EXPECT_EQ(flags_of(call), u32{offsets_clamped});
    host.cu_seqlens_q = offsets.taken;
    const auto judgement = reference::judge_attention(host.problem, host.tensors);
    EXPECT_TRUE(judgement.passed) << judgement.evidence;
    EXPECT_TRUE(call.run(schedule(4)).clean());
    EXPECT_EQ(flags_of(call), 0U);
  }
}

using pipeline::attention::Extent;
using pipeline::attention::Shares;
using pipeline::attention::Units;

u32 units_of(const Units& share) { return share.last - share.first; }

/// Shares follow each other without gaps, the blocks that have one have a unit at least, and every unit's owner is the
/// block that has it. How many units the busiest block has.
u32 busiest(const Shares& shares, u32 units) {
  u32 next = 0;
  u32 most = 0;
  for (u32 block = 0; block < shares.blocks(); ++block) {
    const Units own = shares.of(block);
    EXPECT_EQ(own.first, next);
    EXPECT_GT(own.last, own.first);
    for (u32 unit = own.first; unit < own.last; ++unit) {
      EXPECT_EQ(shares.owner(unit), block);
    }
    next = own.last;
    most = std::max(most, units_of(own));
  }
  EXPECT_EQ(next, units);
  return most;
}

TEST(StreamKShares, EveryUnitHasOneOwnerAndNoBlockMuchMoreThanAnother) {
  for (const u32 blocks : {1U, 3U, 132U}) {
    for (const u32 item_units : {1U, 2U, 5U, 16U, 33U, 64U}) {
      for (const u32 items : {1U, 2U, 5U, 8U, 64U, 131U, 132U, 133U, 256U, 1000U}) {
        const u32 units = items * item_units;
        const u32 sharing = std::min(units, blocks);
        const u32 fair = (units + sharing - 1) / sharing;
        EXPECT_EQ(busiest(Shares({units, 0}, sharing, true), units), fair);
        EXPECT_EQ(busiest(Shares({units, item_units}, sharing, false), units), fair);
        EXPECT_LE(busiest(Shares({units, item_units}, sharing, true), units), fair + std::clamp(fair / 16, 1U, 4U))
            << items << " of " << item_units << " on " << blocks;
      }
    }
  }
}

/// How many blocks work at each of the items, and how many items a block works at.
std::pair<u32, u32> max_shared(u32 items, u32 item_units) {
  const Shares shares({items * item_units, item_units}, 132, true);
  u32 blocks_of_item = 0;
  u32 items_of_block = 0;
  for (u32 item = 0; item < items; ++item) {
    const u32 first = item * item_units;
    blocks_of_item = std::max(blocks_of_item, shares.owner(first + item_units - 1) - shares.owner(first) + 1);
  }
  for (u32 block = 0; block < shares.blocks(); ++block) {
    const Units own = shares.of(block);
    items_of_block = std::max(items_of_block, (own.last - 1) / item_units - own.first / item_units + 1);
  }
  return {blocks_of_item, items_of_block};
}

/// The cases of measurements/attention_decode_variants_h200_2026-11-27.txt that were fastest where a block has nothing
/// but one item's chunks: one sequence of 4096 keys and eight of 1024, of eight heads. And batches whose items fill
/// rounds of the blocks.
TEST(StreamKShares, BlocksEndWhereItemsOfOneSizeDo) {
  EXPECT_EQ(max_shared(8, 64), (std::pair{16U, 1U}));
  EXPECT_EQ(max_shared(64, 16), (std::pair{2U, 1U}));
  EXPECT_EQ(max_shared(256, 16), (std::pair{1U, 2U}));
  EXPECT_EQ(max_shared(1024, 16), (std::pair{1U, 8U}));
  // Whole items would leave half of the blocks idle half of the time; or one of long shares six units more than fair.
  EXPECT_EQ(max_shared(200, 64), (std::pair{2U, 3U}));
  EXPECT_EQ(max_shared(2048, 16), (std::pair{2U, 17U}));
}

/// What is chosen goes by extents: pairs of heads where rows are narrow and chunks enough, half as many keys in a chunk
/// where chunks are few.
TEST(StreamK, ChunksFollowTheExtents) {
  const auto chosen = [](std::int64_t batch, std::int64_t keys, std::int64_t kv_heads, std::int64_t head_dim,
                         bool is_fp8) {
    AttentionProblem problem = paged(4, head_dim, 16, Format::bf16);
    problem.batch = problem.queries = batch;
    problem.kv_heads = kv_heads;
    problem.heads = 4 * kv_heads;
    problem.keys = keys;
    problem.pages = batch * keys / 16;
    if (is_fp8) {
      problem.kv_format = Format::fp8_e4m3;
    }
    const Knobs knobs = stream_k_strategy().plan(problem, {}, device_spec("H200")).knobs;
    return *knobs.find("heads") + " " + *knobs.find("warps");
  };
  EXPECT_EQ(chosen(64, 4096, 8, 64, true), "2 8");
  EXPECT_EQ(chosen(64, 4096, 7, 64, true), "1 8");
  EXPECT_EQ(chosen(64, 4096, 8, 64, false), "1 8");
  EXPECT_EQ(chosen(64, 4096, 8, 128, true), "1 8");
  EXPECT_EQ(chosen(64, 4096, 8, 128, false), "1 4");
  EXPECT_EQ(chosen(1, 1024, 8, 64, true), "1 4");
  EXPECT_EQ(chosen(1, 1024, 8, 128, true), "1 4");
  EXPECT_EQ(chosen(1, 4096, 8, 128, true), "1 8");
}

TEST(StreamK, PairsOfHeadsTakeBoxesAndAnEvenNumberOfThem) {
  AttentionProblem problem = paged(4, 64, 16, Format::bf16);
  problem.queries = problem.keys = 64;
  problem.pages = 16;
  const DeviceSpec device = device_spec("H200");
  EXPECT_TRUE(stream_k_strategy().infeasible_reasons(problem, {{"heads", "2"}}, device).empty());
  EXPECT_EQ(stream_k_strategy().infeasible_reasons(problem, {{"heads", "2"}, {"boxes", "false"}}, device),
            (std::vector<std::string>{"heads is 2, which takes boxes"}));
  problem.kv_heads = 1;
  EXPECT_EQ(stream_k_strategy().infeasible_reasons(problem, {{"heads", "2"}}, device),
            (std::vector<std::string>{"heads is 2, of which problem.kv_heads, 1, is no multiple"}));
}

TEST(StreamK, TheTableHasEveryKnob) {
  EXPECT_EQ(stream_k_strategy().knobs().size(), member_count<StreamKConfig> - 3 + 1);  // and dependent_launch
}

INSTANTIATE_TEST_SUITE_P(Cases, StreamKEmulated, testing::ValuesIn(cases()),
                         [](const auto& tested) { return tested.param.name; });
INSTANTIATE_TEST_SUITE_P(Clusters, StreamKEmulated, testing::ValuesIn(clustered_cases()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace thresher::strategies::attention
