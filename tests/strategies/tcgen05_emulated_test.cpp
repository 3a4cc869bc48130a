// The dual GEMM on tcgen05 run by the emulator, of one block and of pairs: right, clean, and bit for bit what the
// instructions' arithmetic gives.
#include <gtest/gtest.h>

#include <array>
#include <random>

#include "reference/tolerance.hpp"
#include "strategies/gemm/formats.hpp"
#include "strategies/tcgen05_case.hpp"
#include "strategies/tcgen05_model.hpp"

namespace thresher::strategies::gemm::tcgen05::block_scaled {
namespace {

using reference::Rule;
using strategies::test::text_of;
using thresher::test::DualGemmCase;
using thresher::test::Layout;
using thresher::test::Matrix;

DualGemmProblem problem_for(const Config& config, std::int64_t m, std::int64_t n, std::int64_t k) {
  return {.m = m,
          .n = n,
          .k = k,
          .a = Format::nvfp4,
          .b = Format::nvfp4,
          .out = format_of(config.output),
          .activation = {.kind = static_cast<ActivationKind>(config.activation)}};
}

/// What the emulator finds wrong with one call; empty when nothing is.
template <Config config>
std::string run(DualGemmCase& host, std::uint64_t seed) {
  test::Call call(host, config);
  host.c.poison();
  if (const std::string found = text_of(call.prepare(seed)); !found.empty()) {
    return found;
  }
  return text_of(call.multiply<config>(seed).findings);
}

/// The same, and what is wrong with its result.
template <Config config>
std::string run_and_judge(DualGemmCase& host, std::uint64_t seed, Rule rule = Rule::general) {
  if (const std::string found = run<config>(host, seed); !found.empty()) {
    return found;
  }
  if (!host.c.gaps_intact()) {
    return "a gap between rows was written";
  }
  const reference::Verdict verdict = reference::judge_dual_gemm(
      host.problem, rule, host.a.view(), host.b1_gate.view(), host.b2_up.view(), host.c.view(),
      reference::whole(host.problem), reference::Accumulation::float32_truncated);
  if (!verdict.passed) {
    return verdict.explain();
  }
  return test::without_gaps(host.c.view()) == test::model<config>(host) ? "" : "not what the instructions give";
}

template <Config config>
void clean_and_right(std::int64_t m, std::int64_t n, std::int64_t k, std::uint64_t schedules) {
  for (std::uint64_t seed = 0; seed < schedules; ++seed) {
    const Layout layout{.row_gap = seed % 4 == 3 ? 16 : 0,
                        .out_row_gap = seed % 3 == 0 ? 0 : 8,
                        .scales = seed % 2 == 0 ? ScaleLayout::row_major : ScaleLayout::blocked,
                        .global_scales = false};
    DualGemmCase host = DualGemmCase::random(problem_for(config, m, n, k), layout, static_cast<unsigned>(seed + 1));
    ASSERT_EQ(run_and_judge<config>(host, seed), "") << m << "x" << n << "x" << k << ", seed " << seed;
  }
}

/// Each tile's tokens, each way to share a product, each way to finish.
using pipeline::Ablation;
constexpr std::array configs{
    Config{.nvfp4 = true, .dense = true, .output = Number::fp16, .blocks = 1, .block_tokens = 32, .stages = 2},
    Config{.nvfp4 = true, .dense = true, .output = Number::fp16, .blocks = 2, .block_tokens = 32, .stages = 3},
    Config{.nvfp4 = true,
           .dense = true,
           .output = Number::bf16,
           .activation = ActivationCode::gelu_tanh,
           .blocks = 1,
           .block_tokens = 16,
           .stages = 4},
    Config{.nvfp4 = true,
           .dense = true,
           .output = Number::fp32,
           .activation = ActivationCode::swiglu_clamped,
           .blocks = 2,
           .block_tokens = 16,
           .stages = 2},
    Config{.nvfp4 = true, .dense = true, .output = Number::fp32, .blocks = 1, .block_tokens = 80, .stages = 1},
    Config{.nvfp4 = true, .dense = true, .output = Number::fp16, .blocks = 2, .block_tokens = 96, .stages = 2},
    Config{.nvfp4 = true,
           .dense = true,
           .output = Number::fp16,
           .blocks = 1,
           .block_tokens = 32,
           .stages = 2,
           .split_k = 2},
    Config{.nvfp4 = true,
           .dense = true,
           .output = Number::bf16,
           .blocks = 2,
           .block_tokens = 48,
           .stages = 2,
           .split_k = 2},
    Config{.nvfp4 = true,
           .dense = true,
           .output = Number::fp16,
           .blocks = 1,
           .block_tokens = 32,
           .stages = 3,
           .persistent = true},
    Config{.nvfp4 = true,
           .dense = true,
           .output = Number::fp32,
           .blocks = 2,
           .block_tokens = 16,
           .stages = 2,
           .persistent = true},
};
template <std::size_t index>
struct Chosen {
  static constexpr Config config = configs[index];
};
template <std::size_t... index>
::testing::Types<Chosen<index>...> chosen(std::index_sequence<index...>);
using AllChosen = decltype(chosen(std::make_index_sequence<configs.size()>()));

template <class Choice>
class EmulatedTcgen05 : public ::testing::Test {
 protected:
  static constexpr Config config = Choice::config;
  static constexpr std::int64_t tokens = config.block_tokens;
  static constexpr std::int64_t outputs = tile_outputs(config);
};
TYPED_TEST_SUITE(EmulatedTcgen05, AllChosen);

TYPED_TEST(EmulatedTcgen05, OneTokenAndLittleOfK) {
  clean_and_right<TestFixture::config>(1, 8, 256 * (TestFixture::config.split_k - 1) + 16, 2);
}
TYPED_TEST(EmulatedTcgen05, RaggedInEveryDimension) {
  clean_and_right<TestFixture::config>(TestFixture::tokens + 5, TestFixture::outputs + 11, 592, 4);
}
TYPED_TEST(EmulatedTcgen05, WholeTiles) {
  clean_and_right<TestFixture::config>(TestFixture::tokens, TestFixture::outputs, 512, 2);
}

TYPED_TEST(EmulatedTcgen05, GlobalScalesAndEveryScaleCode) {
  DualGemmCase host = DualGemmCase::random(problem_for(TestFixture::config, 20, 33, 320));
  ASSERT_EQ(run_and_judge<TestFixture::config>(host, 1), "");
}

TYPED_TEST(EmulatedTcgen05, NaNScalesSpoilTheirRowsAndNothingElse) {
  DualGemmCase host = DualGemmCase::random(problem_for(TestFixture::config, 9, 40, 320), {.global_scales = false});
  host.b1_gate.set_scale(3, 2, 0x7F);
  host.b2_up.set_scale(35, 7, 0xFF);
  host.a.set_scale(4, 17, 0x7F);
  host.a.set_scale(6, 0, 0xFF);
  ASSERT_EQ(run_and_judge<TestFixture::config>(host, 2), "");
}

constexpr Config one_block = configs[0];
constexpr Config pair = configs[1];

template <Config config>
void many_schedules() {
  const std::int64_t tokens = (config.persistent ? 2 : 1) * config.block_tokens + 1;
  DualGemmCase host = DualGemmCase::random(problem_for(config, tokens, tile_outputs(config) + 6, 592));
  test::Call call(host, config);
  ASSERT_EQ(text_of(call.prepare(0)), "");
  const std::vector<std::uint8_t> expected = test::model<config>(host);
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    host.c.poison();
    ASSERT_EQ(text_of(call.template multiply<config>(seed).findings), "") << seed;
    ASSERT_EQ(test::without_gaps(host.c.view()), expected) << seed;
  }
}
TEST(ManySchedules, OfOneBlock) { many_schedules<one_block>(); }
TEST(ManySchedules, OfAPair) { many_schedules<pair>(); }
TEST(ManySchedules, OfASplit) { many_schedules<configs[7]>(); }
TEST(ManySchedules, OfPersistentBlocks) { many_schedules<configs[8]>(); }
TEST(ManySchedules, OfPersistentPairs) { many_schedules<configs[9]>(); }

/// The tiles that large problems take.
TEST(LargeTiles, OfOneBlock) {
  constexpr Config config{
      .nvfp4 = true, .dense = true, .output = Number::fp16, .blocks = 1, .block_tokens = 128, .stages = 3};
  clean_and_right<config>(131, 70, 272, 2);
}
TEST(LargeTiles, OfAPairWith256Tokens) {
  constexpr Config config{
      .nvfp4 = true, .dense = true, .output = Number::fp16, .blocks = 2, .block_tokens = 256, .stages = 2};
  clean_and_right<config>(300, 96, 256, 1);
}
/// What lands of the other pair's sums, and the staging behind it, take more than the slots.
TEST(LargeTiles, OfASplitOf256Tokens) {
  constexpr Config config{.nvfp4 = true,
                          .dense = true,
                          .output = Number::fp16,
                          .blocks = 2,
                          .block_tokens = 256,
                          .stages = 2,
                          .split_k = 2};
  constexpr pipeline::TensorShape shape = shape_of(config);
  static_assert(pipeline::landing_bytes(shape) + staging_bytes(config) > pipeline::slots_bytes(shape));
  clean_and_right<config>(300, 96, 592, 2);
}
TEST(LargeTiles, OfPersistentPairsWith192Tokens) {
  constexpr Config config{.nvfp4 = true,
                          .dense = true,
                          .output = Number::fp16,
                          .blocks = 2,
                          .block_tokens = 192,
                          .stages = 2,
                          .persistent = true};
  clean_and_right<config>(193, 200, 256, 1);
}

TEST(OutputRows, AnyDistanceApart) {
  for (const std::int64_t gap : {1, 2, 4}) {
    DualGemmCase host = DualGemmCase::random(problem_for(pair, 9, 40, 64), {.out_row_gap = gap});
    ASSERT_EQ(run_and_judge<pair>(host, 1), "") << gap << " elements between rows";
  }
  // Rows that start on 16 bytes, but do not end there.
  DualGemmCase host = DualGemmCase::random(problem_for(pair, 9, 43, 64), {.out_row_gap = 5});
  ASSERT_EQ(run_and_judge<pair>(host, 1), "");
}

/// Kernels that leave a part out, or do it twice, are as clean as the whole ones.
template <Config config>
void ablated() {
  DualGemmCase host = DualGemmCase::random(problem_for(config, 40, 70, 1100));
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    ASSERT_EQ(run<config>(host, seed), "") << seed;
    const bool is_written = !std::isnan(host.c.value(39, 69));
    ASSERT_EQ(is_written, config.ablation != Ablation::no_epilogue) << seed;
  }
}
TEST(Ablated, NothingButLoads) {
  ablated<Config{.nvfp4 = true,
                 .dense = true,
                 .output = Number::fp16,
                 .block_tokens = 32,
                 .stages = 2,
                 .ablation = Ablation::loads_only}>();
}
TEST(Ablated, NothingButProducts) {
  ablated<Config{.nvfp4 = true,
                 .dense = true,
                 .output = Number::fp16,
                 .block_tokens = 32,
                 .stages = 2,
                 .ablation = Ablation::products_only}>();
  ablated<Config{.nvfp4 = true,
                 .dense = true,
                 .output = Number::fp16,
                 .blocks = 1,
                 .block_tokens = 32,
                 .stages = 2,
                 .ablation = Ablation::products_only}>();
}
TEST(Ablated, NoEpilogue) {
  ablated<Config{.nvfp4 = true,
                 .dense = true,
                 .output = Number::fp16,
                 .block_tokens = 32,
                 .stages = 2,
                 .ablation = Ablation::no_epilogue}>();
}
TEST(Ablated, TwoEpilogues) {
  ablated<Config{.nvfp4 = true,
                 .dense = true,
                 .output = Number::fp16,
                 .block_tokens = 32,
                 .stages = 2,
                 .ablation = Ablation::epilogue_twice}>();
}

TEST(Profiled, MomentsFollowOneAnother) {
  using pipeline::Moment;
  constexpr Config config{
      .nvfp4 = true, .dense = true, .output = Number::fp16, .block_tokens = 32, .stages = 2, .profiled = true};
  DualGemmCase host = DualGemmCase::random(problem_for(config, 32, 128, 1024));
  test::Call call(host, config);
  ASSERT_EQ(text_of(call.prepare(0)), "");
  ASSERT_EQ(text_of(call.multiply<config>(0).findings), "");
  constexpr u32 roles = 3;
  ASSERT_EQ(call.profile_words<config>(), roles * pipeline::profile_words);
  const auto moment = [&](u32 block, u32 role, Moment at) {
    return call.profile()[(block * roles + role) * pipeline::profile_words + static_cast<u32>(at)];
  };
  for (u32 block = 0; block < 2; ++block) {
    for (u32 role = 0; role < roles; ++role) {
      EXPECT_NE(moment(block, role, Moment::started), 0U) << role;
    }
    EXPECT_LE(moment(block, 0, Moment::ready), moment(block, 0, Moment::drained));
    EXPECT_LE(moment(block, 0, Moment::drained), moment(block, 0, Moment::finished));
    EXPECT_LE(moment(block, 2, Moment::first_slot), moment(block, 2, Moment::finished));
  }
  EXPECT_LE(moment(0, 2, Moment::first_slot), moment(0, 1, Moment::first_slot));
  EXPECT_LE(moment(0, 1, Moment::first_slot), moment(0, 0, Moment::drained));
  EXPECT_EQ(moment(1, 1, Moment::first_slot), 0U) << "the odd block multiplies nothing";
}

/// Values of at most 1.5 and scales in [0, 1), in blocks: no token is copied.
template <Config config>
DualGemmCase contest_case(std::int64_t m, std::int64_t n, std::int64_t k) {
  DualGemmCase host = DualGemmCase::random(problem_for(config, m, n, k), {.scales = ScaleLayout::blocked});
  std::mt19937 random(5);
  const auto operand = [&](std::int64_t rows) {
    constexpr unsigned one = 0x38;  // the code of 1 in e4m3
    return Matrix::nvfp4(
        rows, k, {.scales = ScaleLayout::blocked, .global_scales = false},
        [&](std::int64_t, std::int64_t) { return static_cast<std::uint8_t>(random() & 0xBU); },
        [&](std::int64_t, std::int64_t) { return static_cast<std::uint8_t>(random() % one); }, 1.0F);
  };
  host.a = operand(m);
  host.b1_gate = operand(n);
  host.b2_up = operand(n);
  return host;
}

template <Config config>
void contest(std::int64_t m, std::int64_t n, std::int64_t k = 512) {
  DualGemmCase host = contest_case<config>(m, n, k);
  ASSERT_EQ(run_and_judge<config>(host, 3, Rule::contest), "") << m << "x" << n;
}
TEST(ContestInputs, OfOneBlock) {
  contest<Config{.nvfp4 = true,
                 .unsigned_scales = true,
                 .dense = true,
                 .output = Number::fp16,
                 .blocks = 1,
                 .block_tokens = 32,
                 .stages = 2}>(30, 64);
}
TEST(ContestInputs, OfAPair) {
  contest<Config{.nvfp4 = true,
                 .unsigned_scales = true,
                 .dense = true,
                 .output = Number::fp16,
                 .blocks = 2,
                 .block_tokens = 128,
                 .stages = 2}>(140, 100);
}

/// In the tiles and rings that the planner gives the origin's problems of 256 and of 512 tokens: all of the tokens, and
/// as much of K as fills the ring and more.
constexpr Config of_256_tokens{.nvfp4 = true,
                               .unsigned_scales = true,
                               .dense = true,
                               .output = Number::fp16,
                               .blocks = 2,
                               .block_tokens = 128,
                               .stages = 8};
constexpr Config of_512_tokens{.nvfp4 = true,
                               .unsigned_scales = true,
                               .dense = true,
                               .output = Number::fp16,
                               .blocks = 2,
                               .block_tokens = 256,
                               .stages = 5};
TEST(OriginsTiles, Of256Tokens) { contest<of_256_tokens>(256, 128, 2560); }
TEST(OriginsTiles, Of512Tokens) { contest<of_512_tokens>(512, 128, 1536); }

/// The whole of them, once: measurements/ has what came of it.
TEST(OriginsProblems, DISABLED_256x4096x7168) { contest<of_256_tokens>(256, 4096, 7168); }
TEST(OriginsProblems, DISABLED_512x4096x7168) { contest<of_512_tokens>(512, 4096, 7168); }
TEST(OriginsProblems, DISABLED_256x3072x4096) { contest<of_256_tokens>(256, 3072, 4096); }
TEST(OriginsProblems, DISABLED_512x3072x7168) { contest<of_512_tokens>(512, 3072, 7168); }
/// Tiles do not start where groups of 128 scales do: tokens are prepared all the same.
TEST(ContestInputs, WhoseScalesDoNotFit) {
  contest<Config{.nvfp4 = true,
                 .unsigned_scales = true,
                 .dense = true,
                 .output = Number::fp16,
                 .blocks = 2,
                 .block_tokens = 32,
                 .stages = 2}>(40, 64);
}

/// The slots fill more than half of the shared memory, so that no more of it is there than the shape says.
TEST(UnsignedScales, ASignMakesItsTileNaN) {
  constexpr Config config{.nvfp4 = true,
                          .unsigned_scales = true,
                          .dense = true,
                          .output = Number::fp32,
                          .blocks = 2,
                          .block_tokens = 128,
                          .stages = 5};
  DualGemmCase host = contest_case<config>(130, 16, 512);
  host.a.set_scale(129, 31, 0xB0);
  ASSERT_EQ(run<config>(host, 1), "");
  for (const std::int64_t row : {0, 127}) {
    EXPECT_FALSE(std::isnan(host.c.value(row, 3))) << row;
  }
  for (const std::int64_t row : {128, 129}) {
    EXPECT_TRUE(std::isnan(host.c.value(row, 3))) << row;
  }
}

/// Of the tokens behind the first 128 of a tile too.
TEST(UnsignedScales, ASignInTheSecondGroupOfScalesMakesItsTileNaN) {
  constexpr Config config{.nvfp4 = true,
                          .unsigned_scales = true,
                          .dense = true,
                          .output = Number::fp32,
                          .blocks = 2,
                          .block_tokens = 256,
                          .stages = 2};
  DualGemmCase host = contest_case<config>(130, 16, 512);
  host.a.set_scale(129, 31, 0xB0);
  ASSERT_EQ(run<config>(host, 1), "");
  EXPECT_TRUE(std::isnan(host.c.value(0, 3)));
}

}  // namespace
}  // namespace thresher::strategies::gemm::tcgen05::block_scaled
