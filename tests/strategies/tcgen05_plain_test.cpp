// The dual GEMM of plain operands on tcgen05 run by the emulator, of one block and of pairs: right, clean, and bit for
// bit what the instructions' arithmetic gives.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "reference/tolerance.hpp"
#include "strategies/tcgen05_plain_case.hpp"
#include "support/dual_gemm_case.hpp"

namespace thresher::strategies::gemm::tcgen05 {
namespace {

using thresher::test::DualGemmCase;

DualGemmProblem problem_for(const Config& config, std::int64_t m, std::int64_t n, std::int64_t k) {
  return {.m = m,
          .n = n,
          .k = k,
          .a = format_of(config.operand, config.token_scaling),
          .b = format_of(config.operand, config.weight_scaling),
          .out = format_of(config.output),
          .activation = {.kind = static_cast<ActivationKind>(config.activation)}};
}

test::Operands operands_of(DualGemmCase& host) {
  return {host.a.view(), host.b1_gate.view(), host.b2_up.view(), host.c.view(), host.problem.activation};
}

template <Config config>
std::string run_and_judge(DualGemmCase& host, std::uint64_t seed) {
  host.c.poison();
  if (const std::string found = test::run<config>(operands_of(host), seed); !found.empty()) {
    return found;
  }
  if (!host.c.gaps_intact()) {
    return "a gap between rows was written";
  }
  const reference::Verdict verdict = reference::judge_dual_gemm(
      host.problem, reference::Rule::general, host.a.view(), host.b1_gate.view(), host.b2_up.view(), host.c.view(),
      reference::whole(host.problem), reference::Accumulation::float32_truncated);
  if (!verdict.passed) {
    return verdict.explain();
  }
  return test::is_what_instructions_give<config>(operands_of(host)) ? "" : "not what the instructions give";
}

constexpr std::array configs{
    Config{.dense = true, .blocks = 1, .block_tokens = 32, .stages = 3},
    Config{
        .operand = Number::fp16, .dense = true, .output = Number::fp16, .blocks = 2, .block_tokens = 64, .stages = 3},
    Config{.dense = true,
           .output = Number::fp32,
           .activation = ActivationCode::gelu_tanh,
           .blocks = 2,
           .block_tokens = 16,
           .stages = 2},
    Config{.operand = Number::fp16,
           .dense = true,
           .output = Number::fp16,
           .activation = ActivationCode::swiglu_clamped,
           .blocks = 1,
           .block_tokens = 48,
           .stages = 2},
    Config{.dense = true, .blocks = 2, .block_tokens = 32, .stages = 2, .persistent = true},
    Config{.dense = true, .blocks = 1, .block_tokens = 32, .stages = 2, .split_k = 2},
    Config{.operand = Number::fp16,
           .dense = true,
           .output = Number::fp32,
           .blocks = 2,
           .block_tokens = 48,
           .stages = 3,
           .split_k = 2},
    Config{.operand = Number::e4m3,
           .token_scaling = Scaling::tensor,
           .weight_scaling = Scaling::tensor,
           .dense = true,
           .blocks = 2,
           .block_tokens = 32,
           .stages = 3},
    Config{.operand = Number::e4m3,
           .token_scaling = Scaling::row,
           .weight_scaling = Scaling::row,
           .dense = true,
           .output = Number::fp16,
           .blocks = 1,
           .block_tokens = 64,
           .stages = 2},
    Config{.operand = Number::e4m3,
           .token_scaling = Scaling::row,
           .weight_scaling = Scaling::tensor,
           .dense = true,
           .output = Number::fp32,
           .activation = ActivationCode::swiglu_clamped,
           .blocks = 2,
           .block_tokens = 48,
           .stages = 2,
           .split_k = 2},
    Config{.operand = Number::e4m3,
           .token_scaling = Scaling::tensor,
           .weight_scaling = Scaling::row,
           .dense = true,
           .blocks = 2,
           .block_tokens = 32,
           .stages = 2,
           .persistent = true},
    Config{.operand = Number::e4m3,
           .token_scaling = Scaling::row,
           .weight_scaling = Scaling::row,
           .dense = true,
           .blocks = 1,
           .block_tokens = 128,
           .stages = 2,
           .split_k = 2},
};
template <std::size_t index>
struct Chosen {
  static constexpr Config config = configs[index];
};
template <std::size_t... index>
::testing::Types<Chosen<index>...> chosen(std::index_sequence<index...>);
using AllChosen = decltype(chosen(std::make_index_sequence<configs.size()>()));

template <class Choice>
class EmulatedPlain : public ::testing::Test {
 protected:
  static constexpr Config config = Choice::config;
  static constexpr std::int64_t row_granule = 16 / element_bytes(config.operand);
  /// With `k` along K, in whole granules of a row.
  static void clean_and_right(std::int64_t m, std::int64_t n, std::int64_t k, std::uint64_t schedules) {
    for (std::uint64_t seed = 0; seed < schedules; ++seed) {
      DualGemmCase host = DualGemmCase::random(problem_for(config, m, n, round_up(k, row_granule)),
                                               {.row_gap = row_granule, .out_row_gap = seed % 3 == 0 ? 0 : 8},
                                               static_cast<unsigned>(seed + 1));
      ASSERT_EQ(run_and_judge<config>(host, seed), "") << m << "x" << n << "x" << k << ", seed " << seed;
    }
  }
};
TYPED_TEST_SUITE(EmulatedPlain, AllChosen);

TYPED_TEST(EmulatedPlain, OneTokenAndLittleOfK) {
  this->clean_and_right(1, 8, (TestFixture::config.split_k - 1) * slot_k(TestFixture::config) + 8, 2);
}
TYPED_TEST(EmulatedPlain, RaggedInEveryDimension) {
  this->clean_and_right(2 * TestFixture::config.block_tokens + 5, tile_outputs(TestFixture::config) + 11, 328, 2);
}
TYPED_TEST(EmulatedPlain, ManySchedulesOfFewTiles) {
  this->clean_and_right(TestFixture::config.block_tokens, 24, 392, 12);
}

TEST(PlainTiles, TheLargestTile) {
  constexpr Config config{.dense = true, .blocks = 2, .block_tokens = 256, .stages = 3};
  DualGemmCase host = DualGemmCase::random(problem_for(config, 250, 264, 72));
  ASSERT_EQ(run_and_judge<config>(host, 1), "");
}

constexpr Config fp8_rows{.operand = Number::e4m3,
                          .token_scaling = Scaling::row,
                          .weight_scaling = Scaling::row,
                          .dense = true,
                          .blocks = 2,
                          .block_tokens = 32,
                          .stages = 2};

TEST(PlainFp8, NaNCodesAndScalesSpoilTheirRowsAndNothingElse) {
  DualGemmCase host = DualGemmCase::random(problem_for(fp8_rows, 37, 40, 144));
  constexpr std::uint8_t nan_code = 0xFF;
  static_cast<std::uint8_t*>(host.a.view().data)[3 * 144 + 5] = nan_code;
  static_cast<std::uint8_t*>(host.b2_up.view().data)[9 * 144] = nan_code;
  const auto scale = [](const Tensor& of, std::int64_t row) -> float& {
    return static_cast<float*>(const_cast<void*>(of.scales.data))[row];
  };
  scale(host.b1_gate.view(), 33) = std::numeric_limits<float>::quiet_NaN();
  scale(host.a.view(), 36) = 0;
  ASSERT_EQ(run_and_judge<fp8_rows>(host, 1), "");
  EXPECT_TRUE(std::isnan(host.c.value(3, 0)) && std::isnan(host.c.value(0, 9)) && std::isnan(host.c.value(0, 33)));
  EXPECT_FALSE(std::isnan(host.c.value(4, 0)) || std::isnan(host.c.value(0, 8)) || std::isnan(host.c.value(0, 32)));
}

/// Neither product of two scales need be a number that float32 holds.
TEST(PlainFp8, LargeScalesOfTokensMeetSmallOnesOfWeights) {
  DualGemmCase host = DualGemmCase::random(problem_for(fp8_rows, 33, 40, 144));
  const auto multiply = [](const Tensor& matrix, float by) {
    for (std::int64_t row = 0; row < matrix.shape[0]; ++row) {
      static_cast<float*>(const_cast<void*>(matrix.scales.data))[row] *= by;
    }
  };
  multiply(host.a.view(), 0x1p100F);
  multiply(host.b1_gate.view(), 0x1p-100F);
  multiply(host.b2_up.view(), 0x1p-100F);
  ASSERT_EQ(run_and_judge<fp8_rows>(host, 1), "");
}

/// What lands of the other pair's sums, and the staging behind it, take more than the slots.
TEST(PlainTiles, TheLargestTileOfASplit) {
  constexpr Config config{.dense = true, .blocks = 2, .block_tokens = 256, .stages = 2, .split_k = 2};
  constexpr pipeline::TensorShape shape = shape_of(config);
  static_assert(pipeline::landing_bytes(shape) + staging_bytes(config) > pipeline::slots_bytes(shape));
  DualGemmCase host = DualGemmCase::random(problem_for(config, 250, 264, 200));
  ASSERT_EQ(run_and_judge<config>(host, 1), "");
}

/// A scale that is not there is 1.
TEST(PlainFp8, OneScaleOfAMatrixMayBeLeftOut) {
  constexpr Config config{.operand = Number::e4m3,
                          .token_scaling = Scaling::tensor,
                          .weight_scaling = Scaling::tensor,
                          .dense = true,
                          .output = Number::fp32,
                          .blocks = 1,
                          .block_tokens = 16,
                          .stages = 2};
  DualGemmCase host = DualGemmCase::random(problem_for(config, 5, 40, 144));
  test::Operands call = operands_of(host);
  call.tokens.global_scale = nullptr;
  call.up.global_scale = nullptr;
  ASSERT_EQ(test::run<config>(call, 1), "");
  EXPECT_TRUE(test::is_what_instructions_give<config>(call));
}

}  // namespace
}  // namespace thresher::strategies::gemm::tcgen05
