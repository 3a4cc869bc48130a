// Attention's launches executed on the CPU, under several schedules: race-free, and right by the definition.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>

#include "arena/emulation/planned_run.hpp"
#include "reference/attention_judgement.hpp"
#include "strategies/attention/launch.hpp"
#include "strategies/attention/pipelined/device/kernel.hpp"
#include "strategies/attention/pipelined/strategy.hpp"
#include "strategies/attention/registry.hpp"
#include "strategies/attention/rows/device/kernel.hpp"
#include "strategies/attention/split/device/kernel.hpp"
#include "strategies/attention/split/strategy.hpp"
#include "strategies/attention/tensors.hpp"
#include "strategies/host/compiled_in.hpp"
#include "support/attention_case.hpp"

namespace thresher::strategies::attention {
namespace {

using test::AttentionCase;

std::vector<NamedTensor> tensors_of(AttentionCase& c) {
  std::vector<NamedTensor> tensors;
  for (const Tensor& tensor : attention::in_order(c.tensors)) {
    tensors.push_back({tensor_names[tensors.size()], tensor});
  }
  return tensors;
}

/// Runs what the strategy plans for a case under a few schedules, launched as a dependent, which asks most of it.
void expect_clean(AttentionCase& c, const std::string& name, Knobs knobs,
                  const std::vector<std::uint64_t>& seeds = {0, 3, 11}) {
  knobs.set("dependent_launch", "true");
  const Strategy<AttentionProblem>* const strategy =
      find_strategy<AttentionProblem>(registry().of(DeviceKind::cuda), name);
  ASSERT_NE(strategy, nullptr) << name;
  arena::PlannedRun run(strategy->plan(c.problem, knobs, device_spec("H200")), tensors_of(c), {});
  const reference::AttentionResult definition = reference::attention(c.problem, c.tensors);
  const reference::AttentionResult plain = reference::attention_plain_low_precision(c.problem, c.tensors);
  for (const std::uint64_t seed : seeds) {
    emulator::Options options;
    options.schedule = emulator::Schedule::from_seed(seed);
    const emulator::Report report = run.run(options);
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

template <class Element>
constexpr Format format_of = std::is_same_v<Element, Half> ? Format::fp16 : Format::bf16;

const char* word(bool flag) { return flag ? "true" : "false"; }

template <StreamConfig config, typename Element>
void run_pipelined(AttentionCase& c) {
  add_compiled_in({pipelined_expression(config, format_of<Element>, Logits::direct),
                   &host_kernel<&pipelined<config, Element, Logits::direct>>});
  add_compiled_in({pipelined_expression(config, format_of<Element>, Logits::general),
                   &host_kernel<&pipelined<config, Element, Logits::general>>});
  expect_clean(c, "pipelined",
               {{"keys", std::to_string(config.keys)},
                {"stages", std::to_string(config.stages)},
                {"math_warpgroups", std::to_string(config.math_warpgroups)},
                {"multicast", std::to_string(config.multicast)},
                {"queries_in_registers", word(config.queries_in_registers)},
                {"take_turns", word(config.take_turns)},
                {"hold_softmax", word(config.hold_softmax)},
                {"base_descriptors", word(config.base_descriptors)}});
}

template <SplitConfig config, typename Element>
void run_split(AttentionCase& c) {
  add_compiled_in({split_expression(config, format_of<Element>, Logits::direct),
                   &host_kernel<&split<config, Element, Logits::direct>>});
  add_compiled_in({split_expression(config, format_of<Element>, Logits::general),
                   &host_kernel<&split<config, Element, Logits::general>>});
  expect_clean(c, "split",
               {{"cluster", std::to_string(config.cluster)},
                {"whole", word(config.whole)},
                {"parts", std::to_string(config.parts)},
                {"inspect_early", word(config.inspect_early)},
                {"narrow_exchange", word(config.narrow_exchange)},
                {"meet_early", word(config.meet_early)},
                {"alone", word(config.alone)}});
}

/// One schedule: it takes its keys one by one, each with the whole warp.
void run_simple(AttentionCase& c) { expect_clean(c, "simple", {}, {11}); }

template <Staging staging>
void run_rows(AttentionCase& c) {
  const std::string name = staging == Staging::none     ? "rows"
                           : staging == Staging::by_row ? "rows_shared"
                                                        : "rows_coalesced";
  add_compiled_in({rows_expression(Format::fp16, staging), &host_kernel<&rows<Half, row_head_dim, staging>>});
  expect_clean(c, name, {});
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
    AttentionCase c(small(20, 200, false, head_dim));
    for (std::int64_t row = 0; row < 20; ++row) {
      c.set(c.tensors.q, 0, row, 0, 1.0F);
      c.set(c.tensors.q, 1, row, 0, 1.0F);
    }
    for (std::int64_t key = 0; key < 150; ++key) {
      c.set(c.tensors.k, 0, key, 0, -std::numeric_limits<float>::infinity());
    }
    each("logits of -Inf before any other", c);
  }
  {
    AttentionProblem problem = small(137, 290, true, head_dim);
    problem.batch = 4;
    problem.variable_length = true;
    AttentionCase c(problem, test::Order::heads_first, {0, 0, 70, 70, 137}, {0, 9, 200, 240, 290});
    each("variable length", c);
  }
  {
    AttentionProblem problem = small(70, 330, true, head_dim);
    problem.batch = 2;
    problem.heads = 4;
    problem.kv_heads = 2;
    problem.scale = 2.0F;
    AttentionCase c(problem);
    each("batches of grouped heads whose largest logit moves from block to block", c);
  }
  {
    AttentionProblem problem = small(70, 330, false, head_dim);
    problem.heads = 1;
    problem.window_left = 20;
    AttentionCase c(problem);
    each("window that is open to the right", c);
  }
}

// The gate race-free needs no compiler for what plan chooses.
TEST(CompiledIn, HoldsWhatIsChosenForDirectLogits) {
  for (const auto* const strategy : registry().of(DeviceKind::cuda)) {
    for (const std::int64_t head_dim : {64, 128, 192, 256}) {
      for (const std::int64_t rows : {64, 256, 512, 1024, 2048, 2052, 4096}) {
        const AttentionProblem problem{
            .heads = 1, .queries = rows, .keys = rows, .head_dim = head_dim, .value_dim = head_dim == 192 ? 128 : 0};
        for (const Knobs& knobs : strategy->candidates(problem, {}, device_spec("H200"))) {
          if (strategy->role(problem) == Role::by_name) {
            continue;
          }
          const PlannedCall call = strategy->plan(problem, knobs, device_spec("H200"));
          EXPECT_NE(find_compiled_in(std::get<KernelLaunch>(call.steps.front()).expression), nullptr)
              << strategy->name() << " " << knobs.text();
        }
      }
    }
  }
}

TEST(AttentionOnTheEmulator, SimpleIsClean) {
  for_each_case(64, run_simple);
  AttentionCase wide(small(9, 67, true, 128), test::Order::rows_first);
  expect_clean(wide, "simple", {});
  AttentionProblem other_values = small(5, 40, true, 192);
  other_values.value_dim = 128;
  AttentionCase latent(other_values, test::Order::rows_first);
  run_simple(latent);
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

// Rows of whole tiles are not computed again: what a block makes of logits of -Inf alone is merged as it is.
TEST(AttentionOnTheEmulator, SplitOfWholeTilesTakesABlockOfLogitsOfMinusInf) {
  AttentionProblem problem = small(64, 512, false, 64);
  problem.kv_heads = 2;
  AttentionCase c(problem);
  for (const int head : {0, 1}) {  // the first block's keys for one, the second's for the other
    for (std::int64_t query = 0; query < 64; ++query) {
      c.set(c.tensors.q, head, query, 0, 1.0F);
    }
    for (std::int64_t key = head * 256; key < (head + 1) * 256; ++key) {
      c.set(c.tensors.k, head, key, 0, -std::numeric_limits<float>::infinity());
    }
  }
  run_split<SplitConfig{64, 2, true, 4, true, false, true}, Half>(c);
  run_split<SplitConfig{64, 2, true, 2, true, true, true, true}, Half>(c);
}

TEST(AttentionOnTheEmulator, PipelinedIsClean) {
  for_each_case(64, run_pipelined<StreamConfig{64, 64, 128, 2, 3, 1, false, true, false}, Half>);
  for_each_case(128, run_pipelined<StreamConfig{128, 128, 128, 2, 2, 1, true, true, true, true}, BFloat16>);
}

TEST(AttentionOnTheEmulator, PipelinedTakesHeadsInPairsAndSinglyAndIsClean) {
  AttentionProblem problem = small(300, 310, true, 128);  // three clusters pair the tiles of three heads of five
  problem.heads = problem.kv_heads = 5;
  AttentionCase c(problem);
  run_pipelined<StreamConfig{128, 128, 128, 2, 2, 1, true, true, true, true}, BFloat16>(c);
}

/// The two kinds of code that widths bring: sums of more columns than a warpgroup keeps with whatever queries, and
/// values that are not as wide as keys.
TEST(AttentionOnTheEmulator, PipelinedOfWideHeadsIsClean) {
  AttentionCase ragged(small(130, 203, true, 256), test::Order::rows_first);
  ragged.set(ragged.tensors.v, 0, 150, 200, std::nanf(""));
  run_pipelined<stream_choice(256, 256, false, true), BFloat16>(ragged);
  AttentionProblem lengths = small(137, 290, true, 256);
  lengths.batch = 4;
  lengths.variable_length = true;
  lengths.softcap = 2.0F;
  AttentionCase variable(lengths, test::Order::heads_first, {0, 0, 70, 70, 137}, {0, 9, 200, 240, 290});
  run_pipelined<stream_choice(256, 256, false, false), BFloat16>(variable);
  AttentionCase none(small(3, 0, false, 256));
  run_pipelined<stream_choice(256, 256, true, true), BFloat16>(none);
}

TEST(AttentionOnTheEmulator, PipelinedOfOtherValuesIsClean) {
  AttentionProblem latent = small(130, 203, true, 192);
  latent.value_dim = 128;
  AttentionCase prefill(latent, test::Order::rows_first);
  prefill.set(prefill.tensors.v, 0, 150, 7, std::nanf(""));
  run_pipelined<stream_choice(192, 128, false, true), BFloat16>(prefill);
  AttentionProblem wider = small(70, 150, false, 64);
  wider.value_dim = 192;
  wider.window_left = 20;
  AttentionCase window(wider);
  run_pipelined<stream_choice(64, 192, false, true), Half>(window);
  AttentionProblem narrower = small(70, 150, true, 256);
  narrower.value_dim = 64;
  AttentionCase shared(narrower);
  run_pipelined<StreamConfig{256, 64, 96, 2, 1, 2, false, false, false, true}, BFloat16>(shared);
}

/// A sink larger than every logit and one of -Inf, over rows that see no key, beyond the softcap, and NaN that rows
/// with a sink do not see.
void for_sinks(const std::function<void(AttentionCase&)>& run) {
  AttentionProblem window = small(140, 60, false, 64);
  window.window_left = 10;
  window.window_right = 20;
  window.softcap = 2.0F;
  window.sinks = true;
  AttentionCase unseen(window);
  unseen.sinks = {7.0F, -std::numeric_limits<float>::infinity()};
  run(unseen);
  AttentionProblem causal = small(70, 290, true, 64);
  causal.sinks = true;
  AttentionCase spoilt(causal);
  spoilt.set(spoilt.tensors.v, 0, 270, 7, std::nanf(""));
  run(spoilt);
}

TEST(AttentionOnTheEmulator, PipelinedTakesSinks) {
  for_sinks(run_pipelined<StreamConfig{64, 64, 128, 2, 2, 1, true, true, false}, Half>);
}

TEST(AttentionOnTheEmulator, SplitTakesSinks) {
  for_sinks(run_split<SplitConfig{64, 2}, Half>);
  AttentionProblem whole = small(64, 512, false, 64);  // whole but for the sinks
  whole.sinks = true;
  AttentionCase c(whole);
  add_compiled_in({split_expression(split_choice(64, 2, false), Format::fp16, Logits::direct),
                   &host_kernel<&split<split_choice(64, 2, false), Half, Logits::direct>>});
  expect_clean(c, "split", {});
}

TEST(AttentionOnTheEmulator, SimpleTakesSinks) { for_sinks(run_simple); }

// A warpgroup sees one block of seven and takes part in the others without a turn.
TEST(AttentionOnTheEmulator, PipelinedThatSkipsManyBlocksIsClean) {
  AttentionProblem problem = small(384, 384, false, 64);
  problem.window_left = problem.window_right = 3;
  AttentionCase c(problem);
  run_pipelined<StreamConfig{64, 64, 64, 2, 3, 2, false, false, false}, Half>(c);
}

TEST(AttentionOnTheEmulator, PipelinedWithSharedKeysIsClean) {
  for_each_case(64, run_pipelined<StreamConfig{64, 64, 128, 2, 1, 2, true, false, false}, Half>);
  for_each_case(128, run_pipelined<StreamConfig{128, 128, 128, 2, 2, 2, true, true, true}, BFloat16>);
}

}  // namespace
}  // namespace thresher::strategies::attention
