#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <tuple>

#include "ops/attention_call.hpp"
#include "strategies/attention/registry.hpp"
#include "strategies/attention/tensors.hpp"
#include "thresher/error.hpp"

namespace thresher::ops {
namespace {

DeviceSpec hopper(int multiprocessors = 132) {
  DeviceSpec spec = device_spec("H200");
  spec.multiprocessors = multiprocessors;
  return spec;
}

strategies::LaunchArguments arguments_of(const strategies::KernelLaunch& launch, const AttentionProblem& p) {
  const bool variable = p.variable_length;
  const auto rows = [&](std::int64_t heads, std::int64_t count) {
    return variable ? Tensor::contiguous(nullptr, p.format, {count, heads, p.head_dim})
                    : Tensor::contiguous(nullptr, p.format, {p.batch, heads, count, p.head_dim});
  };
  const auto tensors = strategies::attention::in_order({.q = rows(p.heads, p.queries),
                                                        .k = rows(p.kv_heads, p.keys),
                                                        .v = rows(p.kv_heads, p.keys),
                                                        .o = rows(p.heads, p.queries)});
  strategies::LaunchArguments arguments;
  EXPECT_TRUE(launch.bind({tensors}, arguments));
  return arguments;
}

/// As a line of attention_choices.txt ends.
std::string described(const AttentionProblem& problem, int multiprocessors) {
  const strategies::PlannedCall call = attention_call(problem, {}, hopper(multiprocessors));
  const auto& launch = std::get<strategies::KernelLaunch>(call.steps.front());
  const strategies::Extent3 grid = arguments_of(launch, problem).grid;
  return fmt::format("{} | {} | {} {} {} of {} threads, {} bytes", call.strategy, call.knobs.text(), grid.x, grid.y,
                     grid.z, launch.block.x, launch.shared_bytes);
}

TEST(AttentionChoice, IsWhatItWasBeforeStrategiesWereObjects) {
  std::ifstream file(THRESHER_SOURCE_DIR "/tests/ops/attention_choices.txt");
  int lines = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) {
      continue;
    }
    std::istringstream words(line);
    AttentionProblem p;
    int multiprocessors = 0;
    std::string bar;
    std::string format;
    float scale = 0;
    words >> multiprocessors >> bar >> p.batch >> p.heads >> p.kv_heads >> p.queries >> p.keys >> p.head_dim >>
        format >> p.causal >> p.softcap >> p.window_left >> scale >> p.variable_length >> bar;
    p.format = format == "bf16" ? Format::bf16 : Format::fp16;
    if (scale != 0) {
      p.scale = scale;
    }
    std::string expected;
    std::getline(words >> std::ws, expected);
    EXPECT_EQ(described(p, multiprocessors), expected) << line;
    ++lines;
  }
  EXPECT_GT(lines, 200);
}

TEST(AttentionChoice, TakesKnobsAndNamesTheOnesItLacks) {
  const AttentionProblem problem{.queries = 4096, .keys = 4096, .head_dim = 128};
  const strategies::PlannedCall call = attention_call(
      problem, {.strategy = "pipelined", .knobs = {{"stages", "3"}, {"math_warpgroups", "1"}, {"take_turns", "1"}}},
      hopper());
  EXPECT_EQ(*call.knobs.find("stages"), "3");
  EXPECT_EQ(*call.knobs.find("take_turns"), "true");
  const auto refusal = [&](const AttentionOptions& options) -> std::string {
    try {
      (void)attention_call(problem, options, hopper());
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(refusal({.strategy = "pipelined", .knobs = {{"speed", "11"}}}),
            "the strategy pipelined has no knob speed, expected one of keys, stages, math_warpgroups, multicast, "
            "queries_in_registers, take_turns, hold_softmax, base_descriptors, dependent_launch");
  EXPECT_EQ(refusal({.strategy = "pipelined", .knobs = {{"multicast", "3"}}}),
            "the knob multicast of strategy pipelined is 3, expected one of 1, 2");
  EXPECT_EQ(refusal({.strategy = "split"}),
            "no strategy of attention can run this problem: split: it takes at most 2048 keys, problem.keys is 4096");
  EXPECT_EQ(refusal({.strategy = "rows"}),
            "no strategy of attention can run this problem: rows: it takes a head_dim of 64, problem.head_dim is 128");
  EXPECT_EQ(refusal({.strategy = "fast"}),
            "strategy fast is not known: use one of pipelined, split, stream_k, mixed, simple, rows, rows_shared, "
            "rows_coalesced");
}

TEST(AttentionChoice, KernelsRefuseWhatTheyDoNotDo) {
  const auto refusal = [](const AttentionProblem& problem, const std::string& strategy) -> std::string {
    try {
      (void)attention_call(problem, {.strategy = strategy}, hopper());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::unsupported);
      return std::string(error.what()).substr(std::string("no strategy of attention can run this problem: ").size());
    }
    return "accepted";
  };
  for (const char* const strategy : {"stream_k", "mixed"}) {
    EXPECT_EQ(refusal({.queries = 4, .keys = 64}, strategy),
              fmt::format("{0}: attention's {0} takes a paged KV cache, problem.page_size is 0", strategy));
  }
  AttentionProblem paged{.queries = 4, .keys = 64, .variable_length = true};
  paged.page_size = 16;
  paged.pages = 8;
  for (const char* const strategy : {"pipelined", "split", "simple", "rows", "rows_shared", "rows_coalesced"}) {
    const auto expect = [&](const AttentionProblem& problem, const std::string& reason) {
      EXPECT_EQ(refusal(problem, strategy), fmt::format("{}: {}", strategy, reason));
    };
    const bool is_general = std::string(strategy) == "pipelined" || std::string(strategy) == "simple";
    if (!is_general) {
      expect(paged, "it takes no paged KV cache, problem.page_size is 16");
    }
    const AttentionProblem codes{.queries = 4, .keys = 64, .kv_format = Format::fp8_e4m3};
    AttentionProblem code_queries = codes;
    code_queries.q_format = Format::fp8_e4m3;
    if (is_general) {
      EXPECT_EQ(refusal(codes, strategy), "accepted");
      EXPECT_EQ(refusal(code_queries, strategy), "accepted");
    } else {
      expect(codes, "it takes keys and values in fp16 like the queries, problem.kv_format is fp8_e4m3");
      expect(code_queries,
             "it takes keys and values in fp16 like the queries, problem.kv_format is fp8_e4m3; it takes queries in "
             "fp16 like the output, problem.q_format is fp8_e4m3");
    }
    if (std::string(strategy).starts_with("rows")) {
      expect({.queries = 4, .keys = 64, .sinks = true}, "it takes no sinks, problem.sinks is true");
    } else {
      EXPECT_EQ(refusal({.queries = 4, .keys = 64, .sinks = true}, strategy), "accepted");
    }
    if (is_general) {
      expect({.queries = 4, .keys = 64, .value_dim = 512},
             "it takes a value_dim of 64 or 128 or 192 or 256, problem.value_dim is 512");
      expect({.queries = 4, .keys = 64, .head_dim = 576, .value_dim = 64},
             "it takes a head_dim of 64 or 128 or 192 or 256, problem.head_dim is 576");
    } else {
      expect({.queries = 4, .keys = 64, .value_dim = 128},
             "it takes values as wide as keys, which are 64, problem.value_dim is 128");
      expect({.queries = 4, .keys = 64, .head_dim = 256},
             fmt::format("it takes a head_dim of 64{}, problem.head_dim is 256",
                         std::string(strategy).starts_with("rows") ? "" : " or 128"));
    }
  }
  EXPECT_EQ(refusal({.queries = 400, .keys = 640, .head_dim = 192}, "pipelined"), "accepted");
  AttentionProblem odd = paged;
  odd.page_size = 12;
  EXPECT_EQ(refusal(odd, "pipelined"), "pipelined: it takes pages of a multiple of 8 rows, problem.page_size is 12");
  EXPECT_EQ(refusal(odd, "simple"), "accepted");
  odd.page_size = 24;
  EXPECT_EQ(refusal(odd, "pipelined"), "accepted");
  AttentionProblem wide = paged;
  for (const std::int64_t value_dim : {192, 512}) {
    wide.value_dim = value_dim;
    EXPECT_EQ(refusal(wide, "stream_k"),
              fmt::format("stream_k: it takes a value_dim of 64 or 128 or 256, problem.value_dim is {}", value_dim));
  }
  AttentionProblem codes = paged;
  codes.kv_format = Format::fp8_e4m3;
  codes.value_dim = 192;
  EXPECT_EQ(refusal(codes, "pipelined"),
            "pipelined: it takes keys in fp8_e4m3 with a value_dim of 64 or 128 or 256, problem.value_dim is 192");
  AttentionProblem many = paged;
  many.batch = std::int64_t{1} << 28;  // the bytes that describe them are 4 in 32 bits
  EXPECT_NE(refusal(many, "stream_k").find("problem.batch is 268435456, it takes less than 16777216 sequences"),
            std::string::npos);
}

TEST(AttentionChoice, EveryWidthHasRoomInABlock) {
  for (const std::int64_t head_dim : {64, 128, 192, 256}) {
    for (const std::int64_t value_dim : {64, 128, 192, 256}) {
      for (const std::int64_t queries : {50, 4096}) {
        const AttentionProblem problem{
            .heads = 16, .kv_heads = 4, .queries = queries, .keys = 4096, .head_dim = head_dim, .value_dim = value_dim};
        EXPECT_EQ(attention_call(problem, {}, hopper()).strategy, "pipelined") << head_dim << " " << value_dim;
      }
    }
  }
}

TEST(AttentionChoice, QueriesOverPagesGoByHowManyASequenceMayHave) {
  AttentionProblem problem{.heads = 32, .kv_heads = 8, .keys = 8192, .head_dim = 128};
  problem.variable_length = true;
  problem.causal = true;
  problem.page_size = 16;
  problem.pages = 4 * 512;
  for (const auto& [batch, queries, strategy] : {std::tuple{4, 4, "stream_k"},
                                                 {4, 32, "stream_k"},
                                                 {4, 11, "stream_k"},
                                                 {1, 512, "pipelined"},
                                                 {4, 4 * 512, "mixed"},
                                                 {32, 31 + 512, "mixed"},
                                                 {128, 127 + 512, "mixed"}}) {
    problem.batch = batch;
    problem.queries = queries;
    EXPECT_EQ(attention_call(problem, {}, hopper()).strategy, strategy) << batch << " " << queries;
  }
  AttentionProblem wide = problem;
  wide.head_dim = 192;
  EXPECT_EQ(attention_call(wide, {}, hopper()).strategy, "pipelined");
  problem.kv_format = Format::fp8_e4m3;
  EXPECT_EQ(attention_call(problem, {}, hopper()).strategy, "mixed");
  problem.batch = 1;
  problem.queries = 512;
  EXPECT_EQ(attention_call(problem, {}, hopper()).strategy, "pipelined");
  problem.queries = 1;
  EXPECT_EQ(attention_call(problem, {}, hopper()).strategy, "stream_k");
}

TEST(AttentionChoice, QueriesInFP8GoWhereOthersGo) {
  AttentionProblem problem{
      .batch = 64, .heads = 32, .kv_heads = 8, .queries = 2048 + 63, .keys = 8192, .head_dim = 128};
  problem.format = Format::bf16;
  problem.kv_format = problem.q_format = Format::fp8_e4m3;
  AttentionProblem without_pages = problem;
  without_pages.batch = 1;
  EXPECT_EQ(attention_call(without_pages, {}, hopper()).strategy, "pipelined");
  problem.variable_length = true;
  problem.page_size = 16;
  problem.pages = 64 * 512;
  EXPECT_EQ(attention_call(problem, {}, hopper()).strategy, "mixed");
  problem.batch = 1;
  EXPECT_EQ(attention_call(problem, {}, hopper()).strategy, "pipelined");
  problem.queries = 1;
  EXPECT_EQ(attention_call(problem, {}, hopper()).strategy, "stream_k");
  const auto refused = [&](const char* knob, const char* value) {
    try {
      (void)attention_call(without_pages, {.strategy = "pipelined", .knobs = {{knob, value}}}, hopper());
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_NE(refused("keys", "112").find("keys is 112, with queries in fp8_e4m3 it takes a multiple of 32"),
            std::string::npos);
  EXPECT_NE(refused("hold_softmax", "1").find("hold_softmax is true"), std::string::npos);
  EXPECT_NE(refused("multicast", "2").find("multicast is 2, whose blocks share no keys in fp8_e4m3"),
            std::string::npos);
}

/// Few short sequences are decoded in one launch. Clusters have to read the keys as fast as all multiprocessors do, or
/// nearly, and one long sequence among others must not be left to few blocks.
TEST(AttentionChoice, FewShortSequencesHaveClusters) {
  AttentionProblem problem{.queries = 1, .head_dim = 128, .format = Format::bf16, .causal = true};
  problem.variable_length = true;
  problem.page_size = 16;
  problem.pages = 32 * 512;
  struct Decode {
    std::int64_t batch, kv_heads, keys;
    const char* cluster;
    std::size_t launches;
  };
  for (const Decode& on : {Decode{1, 8, 1024, "8", 1},
                           {1, 8, 4096, "8", 1},
                           {1, 8, 100, "2", 1},
                           {1, 16, 1024, "4", 1},
                           {1, 64, 1024, "2", 1},
                           {1, 128, 1024, "1", 2},
                           {1, 1, 1024, "8", 1},
                           {1, 1, 65536, "1", 2},
                           {1, 8, 32768, "1", 2},
                           {2, 8, 1024, "4", 1},
                           {8, 8, 1024, "2", 1},
                           {8, 8, 2048, "2", 1},
                           {8, 8, 4096, "1", 2},
                           {32, 8, 1024, "2", 1},
                           {33, 8, 1024, "1", 2}}) {
    problem.batch = problem.queries = on.batch;
    problem.kv_heads = on.kv_heads;
    problem.heads = 4 * on.kv_heads;
    problem.keys = on.keys;
    const strategies::PlannedCall call = attention_call(problem, {}, hopper());
    const auto& launch = std::get<strategies::KernelLaunch>(call.steps.front());
    EXPECT_EQ(call.strategy, "stream_k") << on.kv_heads << " " << on.keys;
    EXPECT_EQ(*call.knobs.find("cluster"), on.cluster) << on.batch << " " << on.kv_heads << " " << on.keys;
    EXPECT_EQ(call.steps.size(), on.launches);
    EXPECT_EQ(std::to_string(launch.cluster.x), on.cluster);
    EXPECT_EQ(launch.persistent, on.launches == 2);
  }
}

TEST(AttentionChoice, EveryWidthOfCodesHasRoomInABlock) {
  for (const std::int64_t head_dim : {64, 128, 256}) {
    for (const std::int64_t value_dim : {64, 128, 256}) {
      for (const float softcap : {0.0F, 3.0F}) {
        AttentionProblem problem{.heads = 16,
                                 .kv_heads = 4,
                                 .queries = 4096,
                                 .keys = 8192,
                                 .head_dim = head_dim,
                                 .value_dim = value_dim,
                                 .kv_format = Format::fp8_e4m3,
                                 .softcap = softcap,
                                 .variable_length = true};
        problem.page_size = 16;
        problem.pages = 512;
        const strategies::PlannedCall call = attention_call(problem, {.strategy = "pipelined"}, hopper());
        EXPECT_EQ(call.strategy, "pipelined") << head_dim << " " << value_dim;
      }
    }
  }
}

TEST(AttentionChoice, BlocksOfAClusterShareWholePanels) {
  const AttentionProblem problem{.queries = 4096, .keys = 4096, .head_dim = 192, .value_dim = 128};
  try {
    (void)attention_call(problem, {.strategy = "pipelined", .knobs = {{"multicast", "2"}}}, hopper());
    FAIL() << "it was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()),
              "no strategy of attention can run this problem: pipelined: multicast is 2, whose blocks cannot share the "
              "three panels of a head_dim of 192");
  }
}

TEST(AttentionChoice, KnobsThatNeedTooMuchSharedMemoryAreRefused) {
  EXPECT_THROW((void)attention_call({.queries = 4096, .keys = 4096, .head_dim = 128},
                                    {.strategy = "pipelined", .knobs = {{"keys", "192"}, {"stages", "4"}}}, hopper()),
               Error);
}

TEST(AttentionChoice, DependentLaunchIsAKnobThatTheLaunchHas) {
  const AttentionProblem plain{.queries = 64, .keys = 64};
  AttentionProblem paged{.queries = 64, .keys = 64, .variable_length = true};
  paged.page_size = 16;
  paged.pages = 4;
  for (const bool dependent : {false, true}) {
    for (const auto* strategy : strategies::attention::registry().of(DeviceKind::cuda)) {
      const AttentionOptions options{.strategy = std::string(strategy->name()), .dependent_launch = dependent};
      const strategies::PlannedCall call =
          attention_call(strategy->unsupported_reason(plain, hopper()) ? paged : plain, options, hopper());
      EXPECT_EQ(std::get<strategies::KernelLaunch>(call.steps.front()).dependent, dependent) << strategy->name();
      EXPECT_EQ(*call.knobs.find("dependent_launch"), dependent ? "true" : "false");
    }
  }
}

}  // namespace
}  // namespace thresher::ops
