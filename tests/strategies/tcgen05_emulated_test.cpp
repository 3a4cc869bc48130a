// The dual GEMM on tcgen05 run by the emulator, of one block and of pairs: right, clean, and bit for bit what the
// instructions' arithmetic gives.
#include <gtest/gtest.h>

#include "reference/tolerance.hpp"
#include "strategies/dual_gemm/formats.hpp"
#include "strategies/tcgen05_case.hpp"

namespace thresher::strategies::dual_gemm::tcgen05 {
namespace {

using thresher::test::DualGemmCase;
using thresher::test::Layout;

DualGemmProblem problem_for(const Config& config, std::int64_t m, std::int64_t n, std::int64_t k) {
  return {.m = m,
          .n = n,
          .k = k,
          .a = Format::nvfp4,
          .b = Format::nvfp4,
          .out = format_of(config.output),
          .activation = {.kind = static_cast<ActivationKind>(config.activation)}};
}

std::string text_of(const std::vector<emulator::Finding>& findings) {
  std::string text;
  for (const emulator::Finding& finding : findings) {
    text += to_string(finding);
  }
  return text;
}

/// What the emulator finds wrong with one call, and what is wrong with its result; empty when nothing is.
template <Config config>
std::string run_and_judge(DualGemmCase& host, std::uint64_t seed) {
  test::Call call(host, config);
  host.c.poison();
  if (const std::string found = text_of(call.prepare(seed)); !found.empty()) {
    return found;
  }
  if (const std::string found = text_of(call.multiply<config>(seed).findings); !found.empty()) {
    return found;
  }
  if (!host.c.gaps_intact()) {
    return "a gap between rows was written";
  }
  const reference::Verdict verdict = reference::judge_dual_gemm(
      host.problem, reference::Rule::general, host.a.view(), host.b1_gate.view(), host.b2_up.view(), host.c.view(),
      reference::whole(host.problem), reference::Accumulation::float32_truncated);
  return verdict.passed ? "" : verdict.explain();
}

template <Config config>
void clean_and_right(std::int64_t m, std::int64_t n, std::int64_t k, std::uint64_t schedules) {
  for (std::uint64_t seed = 0; seed < schedules; ++seed) {
    const Layout layout{.out_row_gap = seed % 3 == 0 ? 0 : 8,
                        .scales = seed % 2 == 0 ? ScaleLayout::row_major : ScaleLayout::blocked,
                        .global_scales = false};
    DualGemmCase host = DualGemmCase::random(problem_for(config, m, n, k), layout, static_cast<unsigned>(seed + 1));
    ASSERT_EQ(run_and_judge<config>(host, seed), "") << m << "x" << n << "x" << k << ", seed " << seed;
  }
}

constexpr Config one_block{.blocks = 1, .block_tokens = 32, .stages = 2};
constexpr Config pair{.blocks = 2, .block_tokens = 32, .stages = 2};

TEST(Tcgen05, OneBlock) { clean_and_right<one_block>(32, 64, 512, 4); }
TEST(Tcgen05, OneBlockRagged) { clean_and_right<one_block>(37, 75, 592, 4); }
TEST(Tcgen05, Pair) { clean_and_right<pair>(32, 128, 512, 4); }
TEST(Tcgen05, PairRagged) { clean_and_right<pair>(37, 75, 592, 4); }

}  // namespace
}  // namespace thresher::strategies::dual_gemm::tcgen05
