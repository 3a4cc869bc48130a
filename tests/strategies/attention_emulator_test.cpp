// Attention's kernels executed on the CPU, under several schedules: race-free, and right by the definition.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <memory>
#include <string>

#include "machine/emulator/engine/launch.hpp"
#include "machine/emulator/engine/tensor_map.hpp"
#include "reference/attention_judgement.hpp"
#include "strategies/attention/pipelined.hpp"
#include "strategies/attention/rows.hpp"
#include "strategies/attention/simple.hpp"
#include "strategies/attention/split.hpp"
#include "support/attention_case.hpp"

namespace thresher::strategies::attention {
namespace {

using test::AttentionCase;

/// What a strategy copies and launches.
struct Shape {
  emulator::LaunchShape launch{};
  i32 tile_rows = 0;
  u32 query_box_rows = 0;
  u32 key_box_rows = 0;
  u32 key_box_panels = 0;
  bool persistent = false;
};

Operand operand(const Tensor& tensor, bool variable) {
  const auto data = static_cast<u64>(std::bit_cast<std::uintptr_t>(tensor.data));
  return variable ? Operand{data, 0, tensor.strides[1], tensor.strides[0]}
                  : Operand{data, tensor.strides[0], tensor.strides[1], tensor.strides[2]};
}

TensorMap map_of(const AttentionProblem& problem, const Tensor& tensor, u32 box_rows, u32 box_panels) {
  if (tensor.elements() == 0 || box_rows == 0) {
    return {};
  }
  const Operand rows = operand(tensor, problem.variable_length);
  TensorMapDescription description;
  description.address = rows.data;
  description.element = problem.format == Format::fp16 ? ElementType::fp16 : ElementType::bf16;
  description.swizzle = Swizzle::b128;
  description.rank = 5;
  const u64 extents[5] = {64, static_cast<u64>(tensor.shape[problem.variable_length ? 0 : 2]),
                          static_cast<u64>(problem.head_dim) / 64, static_cast<u64>(tensor.shape[1]),
                          problem.variable_length ? 1 : static_cast<u64>(tensor.shape[0])};
  const i64 strides[5] = {0, rows.row_stride * 2, 128, rows.head_stride * 2, rows.batch_stride * 2};
  const u32 box[5] = {64, box_rows, box_panels, 1, 1};
  for (int d = 0; d < 5; ++d) {
    description.extent[d] = extents[d];
    description.stride_bytes[d] = extents[d] > 1 ? static_cast<u64>(strides[d]) : 16;
    description.box[d] = box[d];
  }
  return emulator::encode_tensor_map(description);
}

Params params_of(const AttentionCase& c, const Shape& shape) {
  const AttentionProblem& p = c.problem;
  const auto bounded = [](std::int64_t window) { return static_cast<i32>(window < 0 ? 1 << 29 : window); };
  Params params{};
  params.query_map = map_of(p, c.tensors.q, shape.query_box_rows, static_cast<u32>(p.head_dim) / 64);
  params.key_map = map_of(p, c.tensors.k, shape.key_box_rows, shape.key_box_panels);
  params.value_map = map_of(p, c.tensors.v, shape.key_box_rows, shape.key_box_panels);
  params.q = operand(c.tensors.q, p.variable_length);
  params.k = operand(c.tensors.k, p.variable_length);
  params.v = operand(c.tensors.v, p.variable_length);
  params.o = operand(c.tensors.o, p.variable_length);
  params.lse = std::bit_cast<std::uintptr_t>(c.tensors.lse.data);
  params.lse_batch_stride = p.variable_length ? 0 : c.tensors.lse.strides[0];
  params.lse_head_stride = c.tensors.lse.strides[p.variable_length ? 0 : 1];
  params.cu_seqlens_q = std::bit_cast<std::uintptr_t>(c.tensors.cu_seqlens_q.data);
  params.cu_seqlens_k = std::bit_cast<std::uintptr_t>(c.tensors.cu_seqlens_k.data);
  params.batch = static_cast<i32>(p.batch);
  params.heads = static_cast<i32>(p.heads);
  params.group = static_cast<i32>(p.heads / p.kv_heads);
  params.queries = static_cast<i32>(p.queries);
  params.keys = static_cast<i32>(p.keys);
  params.window_left = bounded(p.window_left);
  params.window_right = p.causal ? 0 : bounded(p.window_right);
  const float scale = effective_scale(p);
  params.scale_log2 = (p.softcap > 0 ? p.softcap : scale) * 1.44269504F;
  params.inner_scale = p.softcap > 0 ? scale / p.softcap : 0.0F;
  params.query_tiles = p.variable_length ? params.queries / shape.tile_rows + params.batch
                                         : (params.queries + shape.tile_rows - 1) / shape.tile_rows;
  if (shape.persistent && !p.variable_length) {
    params.order = p.causal ? Order::paired_then_longest_first : Order::short_tiles_last;
    params.missing_rows = params.query_tiles * shape.tile_rows - params.queries;
  }
  return params;
}

bool is_general(const AttentionProblem& problem) { return problem.softcap > 0 || !(effective_scale(problem) > 0); }

/// Runs a case under a few schedules; `launch` calls the kernel with its parameters.
void expect_clean(AttentionCase& c, const Shape& shape, const std::function<void(const Params&)>& kernel) {
  const Params params = params_of(c, shape);
  emulator::GlobalMemory memory;
  const auto add = [&](const char* name, const auto& data, std::size_t count, emulator::Use use) {
    if (count > 0) {
      memory.add(name, data.data(), count * sizeof(data[0]), use);
    }
  };
  add("q", c.q, c.q.size(), emulator::Use::input);
  add("k", c.k, c.k.size(), emulator::Use::input);
  add("v", c.v, c.v.size(), emulator::Use::input);
  add("o", c.o, c.o.size(), emulator::Use::output);
  add("lse", c.lse, c.lse.size() - 1, emulator::Use::output);
  add("cu_seqlens_q", c.cu_seqlens_q, c.cu_seqlens_q.size(), emulator::Use::input);
  add("cu_seqlens_k", c.cu_seqlens_k, c.cu_seqlens_k.size(), emulator::Use::input);
  const reference::AttentionResult definition = reference::attention(c.problem, c.tensors);
  const reference::AttentionResult plain = reference::attention_plain_low_precision(c.problem, c.tensors);
  for (const std::uint64_t seed : {0, 3, 11}) {
    std::fill(c.o.begin(), c.o.end(), AttentionCase::poison);
    emulator::Options options;
    options.schedule = emulator::Schedule::from_seed(seed);
    const emulator::Report report = emulator::launch(shape.launch, options, memory, [&] { kernel(params); });
    for (const emulator::Finding& finding : report.findings) {
      ADD_FAILURE() << "seed " << seed << ": " << emulator::to_string(finding);
    }
    if (!report.clean()) {
      return;
    }
    const auto judgement = reference::judge_attention(c.problem, c.tensors, definition, plain);
    EXPECT_TRUE(judgement.passed) << "seed " << seed << ": " << judgement.evidence;
  }
}

u32 tiles_of_all_heads(const AttentionProblem& p, i32 rows) {
  const i64 tiles = p.variable_length ? p.queries / rows + p.batch : (p.queries + rows - 1) / rows;
  return static_cast<u32>(tiles * p.heads * (p.variable_length ? 1 : p.batch));
}

template <StreamConfig config, typename Element>
void run_pipelined(AttentionCase& c) {
  Shape shape{.tile_rows = config.rows() * config.cluster,
              .query_box_rows = static_cast<u32>(config.rows()),
              .key_box_rows = static_cast<u32>(config.copied_keys()),
              .key_box_panels = static_cast<u32>(config.copied_panels()),
              .persistent = true};
  // Fewer clusters than pieces, so that a block takes several.
  const u32 all = tiles_of_all_heads(c.problem, shape.tile_rows);
  shape.launch.grid.x = (all > 3 ? 3 : all) * static_cast<u32>(config.cluster);
  shape.launch.cluster.x = static_cast<u32>(config.cluster);
  shape.launch.block = static_cast<u32>(config.threads());
  shape.launch.dynamic_shared_bytes = config.shared_bytes();
  if (is_general(c.problem)) {
    expect_clean(c, shape, [](const Params& params) { pipelined<config, Element, Logits::general>(params); });
  } else {
    expect_clean(c, shape, [](const Params& params) { pipelined<config, Element, Logits::direct>(params); });
  }
}

template <SplitConfig config, typename Element>
void run_split(AttentionCase& c) {
  Shape shape{.tile_rows = SplitConfig::rows,
              .query_box_rows = SplitConfig::rows,
              .key_box_rows = SplitConfig::chunk,
              .key_box_panels = config.head_dim / 64};
  const u32 tiles = tiles_of_all_heads(c.problem, SplitConfig::rows) / static_cast<u32>(c.problem.heads);
  const u32 batch = c.problem.variable_length ? 1 : static_cast<u32>(c.problem.batch);
  shape.launch.grid = {static_cast<u32>(c.problem.heads * config.cluster), tiles / batch, batch};
  shape.launch.cluster.x = static_cast<u32>(config.cluster);
  shape.launch.block = SplitConfig::threads;
  shape.launch.dynamic_shared_bytes = config.shared_bytes();
  if (is_general(c.problem)) {
    expect_clean(c, shape, [](const Params& params) { split<config, Element, Logits::general>(params); });
  } else {
    expect_clean(c, shape, [](const Params& params) { split<config, Element, Logits::direct>(params); });
  }
}

void run_simple(AttentionCase& c) {
  Shape shape{.tile_rows = simple_warps};
  shape.launch.grid.x = tiles_of_all_heads(c.problem, simple_warps);
  shape.launch.block = simple_warps * 32;
  expect_clean(c, shape, [&](const Params& params) {
    c.problem.head_dim == 64 ? simple<Half, 64>(params) : simple<BFloat16, 128>(params);
  });
}

template <Staging staging>
void run_rows(AttentionCase& c) {
  Shape shape{.tile_rows = row_threads};
  shape.launch.grid.x = tiles_of_all_heads(c.problem, row_threads);
  shape.launch.block = row_threads;
  shape.launch.dynamic_shared_bytes = staged_bytes;
  expect_clean(c, shape, [](const Params& params) { rows<Half, 64, staging>(params); });
}

AttentionProblem small(i32 queries, i32 keys, bool causal, i32 head_dim) {
  return {.batch = 1,
          .heads = 2,
          .kv_heads = 1,
          .queries = queries,
          .keys = keys,
          .head_dim = head_dim,
          .format = head_dim == 64 ? Format::fp16 : Format::bf16,
          .causal = causal};
}

/// The cases that each strategy runs: ragged causal, windows with rows that see nothing, NaN, softcap, variable length.
void for_each_case(i32 head_dim, const std::function<void(AttentionCase&)>& run) {
  const auto each = [&](const char* name, AttentionCase& c) {
    SCOPED_TRACE(name);
    run(c);
  };
  {
    AttentionCase c(small(130, 203, true, head_dim), test::Order::rows_first);
    c.set(c.tensors.v, 0, 150, 7, std::nanf(""));
    each("causal, a NaN that only later queries see", c);
  }
  {
    AttentionProblem problem = small(140, 60, false, head_dim);
    problem.window_left = 10;
    problem.window_right = 20;
    problem.softcap = 2.0F;
    AttentionCase c(problem);
    each("window with rows that see no key, softcap", c);
  }
  {
    AttentionCase c(small(3, 0, false, head_dim));
    each("no keys", c);
  }
  {
    AttentionProblem problem = small(137, 290, true, head_dim);
    problem.batch = 4;
    problem.variable_length = true;
    AttentionCase c(problem, test::Order::heads_first, {0, 0, 70, 70, 137}, {0, 9, 200, 240, 290});
    each("variable length", c);
  }
}

TEST(AttentionOnTheEmulator, SimpleIsClean) {
  for_each_case(64, run_simple);
  for_each_case(128, run_simple);
}

TEST(AttentionOnTheEmulator, RowsAreClean) {
  for_each_case(64, run_rows<Staging::none>);
  for_each_case(64, run_rows<Staging::by_row>);
  for_each_case(64, run_rows<Staging::coalesced>);
}

TEST(AttentionOnTheEmulator, SplitIsClean) {
  for_each_case(64, run_split<SplitConfig{64, 2}, Half>);
  for_each_case(128, run_split<SplitConfig{128, 4}, BFloat16>);
}

TEST(AttentionOnTheEmulator, SplitWithFinerStepsIsClean) {
  for_each_case(64, run_split<SplitConfig{64, 2, false, 4, false, true, true}, Half>);
  for_each_case(128, run_split<SplitConfig{128, 4, false, 2, false, true, true}, BFloat16>);
}

TEST(AttentionOnTheEmulator, SplitOfWholeTilesIsClean) {
  AttentionProblem problem = small(64, 512, false, 64);
  problem.batch = 2;
  AttentionCase c(problem, test::Order::rows_first);
  run_split<SplitConfig{64, 2, true, 4, true, false, true}, Half>(c);
  run_split<SplitConfig{64, 2, true, 2, true, true, true, true}, Half>(c);
  AttentionCase wide(small(64, 512, false, 128));
  run_split<SplitConfig{128, 2, true, 4, true, false, true}, BFloat16>(wide);
}

TEST(AttentionOnTheEmulator, PipelinedIsClean) {
  for_each_case(64, run_pipelined<StreamConfig{64, 128, 2, 3, 1, false, true, false}, Half>);
  for_each_case(128, run_pipelined<StreamConfig{128, 128, 2, 2, 1, true, true, true, true}, BFloat16>);
}

TEST(AttentionOnTheEmulator, PipelinedTakesHeadsInPairsAndSinglyAndIsClean) {
  AttentionProblem problem = small(300, 310, true, 128);  // three clusters pair the tiles of three heads of five
  problem.heads = problem.kv_heads = 5;
  AttentionCase c(problem);
  run_pipelined<StreamConfig{128, 128, 2, 2, 1, true, true, true, true}, BFloat16>(c);
}

TEST(AttentionOnTheEmulator, PipelinedWithSharedKeysIsClean) {
  for_each_case(64, run_pipelined<StreamConfig{64, 128, 2, 1, 2, true, false, false}, Half>);
  for_each_case(128, run_pipelined<StreamConfig{128, 128, 2, 2, 2, true, true, true}, BFloat16>);
}

}  // namespace
}  // namespace thresher::strategies::attention
