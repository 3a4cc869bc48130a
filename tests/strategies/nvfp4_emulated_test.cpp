// The packed NVFP4 dual GEMM run by the emulator: packing, preparing tokens and the product, in both numerics, with
// ragged edges and many schedules. Right and clean.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "emulated_case.hpp"
#include "reference/dual_gemm.hpp"
#include "reference/fold.hpp"
#include "reference/tolerance.hpp"
#include "strategies/gemm/formats.hpp"
#include "strategies/gemm/registry.hpp"
#include "strategies/gemm/samples.hpp"
#include "strategies/gemm/wgmma_dequant/device/quantize_tokens.hpp"
#include "strategies/gemm/wgmma_dequant/kernel.hpp"
#include "strategies/gemm/wgmma_dequant/tiles.hpp"

namespace thresher::strategies::gemm::wgmma_dequant {
namespace {

std::string title(const Config& config) { return knob_table().knobs(config).text(); }

DualGemmProblem problem_for(const Config& config, std::int64_t m, std::int64_t n, std::int64_t k, Format a) {
  return {.m = m,
          .n = n,
          .k = k,
          .a = a,
          .b = Format::nvfp4,
          .out = format_of(config.output),
          .activation = {.kind = static_cast<ActivationKind>(config.activation)}};
}

/// What the emulator finds wrong with one call on `host`, and what is wrong with its result; empty when nothing is.
std::string run_and_judge(const PlannedCall& call, Numerics numerics, test::DualGemmCase& host, std::uint64_t seed) {
  const Tensor a = host.a.view();
  const Tensor gate = host.b1_gate.view();
  const Tensor up = host.b2_up.view();
  host.c.poison();
  const emulator::Report report = test::emulate(call, host, seed);
  std::string found;
  for (const emulator::Finding& finding : report.findings) {
    found += to_string(finding);
  }
  if (!found.empty()) {
    return found;
  }
  if (!host.c.gaps_intact()) {
    return "a gap between rows was written";
  }
  const reference::Verdict verdict =
      numerics == Numerics::fast
          ? reference::judge_fast_dual_gemm(host.problem, reference::Rule::general, a, gate, up, host.c.view(),
                                            reference::whole(host.problem), reference::Accumulation::float32_truncated)
          : reference::judge_dual_gemm(host.problem, reference::Rule::general, a, gate, up, host.c.view(),
                                       reference::whole(host.problem), reference::Accumulation::float32_truncated);
  return verdict.passed ? "" : verdict.explain();
}
std::string run_and_judge(const Config& config, test::DualGemmCase& host, std::uint64_t seed) {
  return run_and_judge(planned_call(host.problem, config, 0), config.numerics, host, seed);
}

/// The dense ones come first.
constexpr auto num_dense_configs =
    static_cast<std::size_t>(std::ranges::count_if(small_configs, [](const Config& config) { return config.dense; }));

class EmulatedNvfp4 : public ::testing::TestWithParam<std::size_t> {
 protected:
  [[nodiscard]] static const Config& config() { return small_configs[GetParam()]; }

  static void clean_and_right(std::int64_t m, std::int64_t n, std::int64_t k, Format a, std::uint64_t schedules) {
    for (std::uint64_t seed = 0; seed < schedules; ++seed) {
      const test::Layout layout{.row_gap = a == Format::nvfp4 ? 0 : 8,
                                .out_row_gap = seed % 3 == 0 ? 0 : 8,
                                .scales = seed % 2 == 0 ? ScaleLayout::row_major : ScaleLayout::blocked,
                                .global_scales = false};
      test::DualGemmCase host =
          test::DualGemmCase::random(problem_for(config(), m, n, k, a), layout, static_cast<unsigned>(seed + 1));
      ASSERT_EQ(run_and_judge(config(), host, seed), "")
          << title(config()) << ", " << m << "x" << n << "x" << k << " " << name(a);
    }
  }
  [[nodiscard]] static Format wide() { return config().operand == Number::bf16 ? Format::bf16 : Format::fp16; }
  /// NVFP4 tokens become fp16.
  [[nodiscard]] static bool takes_nvfp4() { return config().operand == Number::fp16; }
};

TEST_P(EmulatedNvfp4, OneTokenAndOneGroupOfK) { clean_and_right(1, 8, 16, wide(), 3); }
TEST_P(EmulatedNvfp4, RaggedInEveryDimension) { clean_and_right(37, 75, 592, wide(), 4); }
TEST_P(EmulatedNvfp4, WholeTiles) { clean_and_right(64, 64, 512, wide(), 2); }
TEST_P(EmulatedNvfp4, Nvfp4Tokens) {
  if (takes_nvfp4()) {
    clean_and_right(33, 40, 336, Format::nvfp4, 3);
  }
}

/// Longer than the threads that quantize a row hold in registers.
TEST_P(EmulatedNvfp4, LongRows) {
  if (config().numerics == Numerics::fast) {
    const std::int64_t held = quantize_threads * held_parts * 16;
    clean_and_right(2, 8, held + 64, Format::nvfp4, 2);  // with both layouts of scales
    clean_and_right(2, 8, held + 64, Format::fp16, 1);
  }
}

TEST_P(EmulatedNvfp4, TheLargestElementOfALongRowMayLieInItsTail) {
  if (config().numerics == Numerics::fast) {
    constexpr std::uint8_t largest_scale = 0x7E;
    const std::int64_t k = quantize_threads * held_parts * 16 + 64;
    for (const Format tokens : {Format::nvfp4, Format::fp16}) {
      test::DualGemmCase host =
          test::DualGemmCase::random(problem_for(config(), 2, 8, k, tokens), {.global_scales = false});
      if (tokens == Format::nvfp4) {
        host.a.set_scale(1, k / 16 - 1, largest_scale);
      } else {
        host.a.set_value(1, k - 1, 1000.0F);
      }
      ASSERT_EQ(run_and_judge(config(), host, 1), "") << title(config()) << " " << name(tokens);
    }
  }
}

/// Rows that start on any byte, and scales that do.
TEST_P(EmulatedNvfp4, TokensAndScalesAtAnyByte) {
  if (!takes_nvfp4()) {
    return;
  }
  for (const std::int64_t gap : {0, 2, 4, 8}) {
    test::DualGemmCase host = test::DualGemmCase::random(problem_for(config(), 9, 40, 256, Format::nvfp4),
                                                         {.row_gap = gap, .global_scales = false});
    ASSERT_EQ(run_and_judge(config(), host, 1), "") << title(config()) << ", " << gap << " elements between rows";
    for (const std::size_t byte : {1, 2}) {
      host.a.move_scales(byte);
      ASSERT_EQ(run_and_judge(config(), host, 1), "") << title(config()) << ", scales " << byte << " bytes further";
    }
  }
}

TEST_P(EmulatedNvfp4, OutputRowsAnyDistanceApart) {
  for (const std::int64_t gap : {1, 2, 4}) {
    test::DualGemmCase host =
        test::DualGemmCase::random(problem_for(config(), 9, 40, 64, wide()), {.out_row_gap = gap});
    ASSERT_EQ(run_and_judge(config(), host, 1), "") << title(config()) << ", " << gap << " elements between rows";
  }
  // Rows that start on 16 bytes, but do not end there.
  test::DualGemmCase host = test::DualGemmCase::random(problem_for(config(), 9, 43, 64, wide()), {.out_row_gap = 5});
  ASSERT_EQ(run_and_judge(config(), host, 1), "") << title(config());
}

/// No token's factor does for another's.
TEST_P(EmulatedNvfp4, RowsOfDifferentMagnitude) {
  test::DualGemmCase host = test::DualGemmCase::random(problem_for(config(), 70, 33, 144, wide()));
  for (std::int64_t row = 0; row < host.problem.m; ++row) {
    const auto factor = std::ldexp(1.0F, -static_cast<int>(row * 5 % 7));
    for (std::int64_t k = 0; k < host.problem.k; ++k) {
      host.a.set_value(row, k, static_cast<float>(host.a.value(row, k)) * factor);
    }
  }
  ASSERT_EQ(run_and_judge(config(), host, 1), "") << title(config());
}

TEST_P(EmulatedNvfp4, GlobalScalesAndEveryScaleCode) {
  if (takes_nvfp4()) {
    test::DualGemmCase host = test::DualGemmCase::random(problem_for(config(), 20, 33, 256, Format::nvfp4));
    ASSERT_EQ(run_and_judge(config(), host, 1), "") << title(config());
  }
}

TEST_P(EmulatedNvfp4, NaNAndInfSpoilTheirRowsAndNothingElse) {
  test::DualGemmCase host =
      test::DualGemmCase::random(problem_for(config(), 9, 40, 128, wide()), {.global_scales = false});
  host.b1_gate.set_scale(3, 2, 0x7F);
  host.b2_up.set_scale(35, 7, 0xFF);
  host.a.set_pattern(4, 17, 0x7FFF);
  host.a.set_value(6, 30, std::numeric_limits<float>::infinity());
  ASSERT_EQ(run_and_judge(config(), host, 2), "") << title(config());
}

TEST_P(EmulatedNvfp4, AScaleOfZeroMakesItsValuesZero) {
  test::DualGemmCase host =
      test::DualGemmCase::random(problem_for(config(), 9, 40, 128, wide()), {.global_scales = false});
  for (std::int64_t block = 0; block < host.problem.k / 16; ++block) {
    const bool is_negative = block % 2 == 1;
    host.b1_gate.set_scale(3, block, is_negative ? 0x80 : 0);
    host.b2_up.set_scale(35, block, is_negative ? 0x80 : 0);
  }
  ASSERT_EQ(run_and_judge(config(), host, 1), "") << title(config());
}

/// Five exponents of e4m3 that a row has to itself.
void give_rows_different_magnitudes(test::Matrix& tokens, std::int64_t rows, std::int64_t blocks) {
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t block = 0; block < blocks; ++block) {
      tokens.set_scale(row, block, static_cast<std::uint8_t>((3 + row % 5) << 3 | block % 8));
    }
  }
}

/// What may be chosen, on problems of little more than one tile and one turn of the ring.
class EveryChoice : public ::testing::TestWithParam<std::size_t> {};

TEST_P(EveryChoice, IsCleanAndRightAndBitwiseEqualOnEverySchedule) {
  const Config config = dense_default_configs[GetParam()];
  const std::int64_t slot_k = stage_k(config);
  const std::int64_t k = slot_k * config.stages * config.split_k + slot_k + 16;
  const Format tokens = config.operand == Number::bf16 ? Format::bf16 : Format::nvfp4;
  test::DualGemmCase host = test::DualGemmCase::random(
      problem_for(config, config.block_tokens + 3, tile_outputs(config) + 5, k, tokens), {.global_scales = false});
  if (tokens == Format::nvfp4) {
    give_rows_different_magnitudes(host.a, host.problem.m, k / 16);
  }
  std::vector<std::uint8_t> first;
  for (const std::uint64_t seed : {0, 3, 17}) {
    host.c.poison();
    ASSERT_EQ(run_and_judge(config, host, seed), "") << title(config) << ", seed " << seed;
    if (first.empty()) {
      first = host.c.bytes();
    }
    ASSERT_EQ(host.c.bytes(), first) << title(config) << ", seed " << seed;
  }
}

/// Outputs that a launch behind the product quantizes: in every format, with scales in every layout, from tokens of
/// every format, on edges of tiles; fewer rows than the plan is for.
TEST(EmulatedNvfp4Requantised, IsCleanAndRightInEveryFormatAndLayout) {
  const Strategy<ProductProblem>& strategy = packed_strategy();
  std::uint64_t seed = 0;
  int checked = 0;
  for (const Sample<ProductProblem>& sample : of_product(strategy.samples(), Product::dual_gemm)) {
    if (sample.problem.out != Format::fp32) {
      continue;  // what no kernel leaves for such a launch
    }
    const std::string* const numerics = sample.knobs.find("numerics");
    for (const Format out : {Format::fp8_tensor, Format::fp8_row, Format::fp8_block, Format::nvfp4}) {
      for (const auto& [m, n, a] :
           {std::tuple{1, 128, Format::fp16}, {37, 256, Format::nvfp4}, {66, 128, Format::fp16}}) {
        DualGemmProblem problem = sample.problem.dual_gemm();
        problem.out = out;
        problem.a = a;
        problem.m = m + 3;
        problem.n = out == Format::nvfp4 ? n + 16 : n + (out == Format::fp8_block ? 0 : 13);
        problem.k = m == 66 ? 256 : 208;  // read where they lie, and padded first
        const PlannedCall call = strategy.plan(problem, sample.knobs, device_spec("H200"));
        ASSERT_EQ(call.steps.size(), call.preparation_steps + 2) << sample.knobs.text();
        problem.m = m;
        for (const ScaleLayout layout : {ScaleLayout::row_major, ScaleLayout::column_major, ScaleLayout::blocked}) {
          if (!may_lie(layout, out, OperandRole::tokens)) {
            continue;
          }
          test::DualGemmCase host = test::DualGemmCase::random(problem, {.out_row_gap = m == 1 ? 0 : 16,
                                                                         .global_scales = false,
                                                                         .out_scales = layout,
                                                                         .out_powers_of_two = m == 37});
          const Numerics how = numerics != nullptr && *numerics == "fast" ? Numerics::fast : Numerics::exact;
          ASSERT_EQ(run_and_judge(call, how, host, seed++), "")
              << name(out) << " " << m << " " << name(layout) << " " << sample.knobs.text();
          ++checked;
        }
      }
    }
  }
  EXPECT_EQ(checked, 2 * 3 * (1 + 1 + 2 + 2));
}

INSTANTIATE_TEST_SUITE_P(AllChoices, EveryChoice, ::testing::Range(std::size_t{0}, dense_default_configs.size()));

INSTANTIATE_TEST_SUITE_P(AllConfigurations, EmulatedNvfp4, ::testing::Range(std::size_t{0}, num_dense_configs));

}  // namespace
}  // namespace thresher::strategies::gemm::wgmma_dequant
