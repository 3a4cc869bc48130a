// The CPU's strategies against the float64 definition: every mix of formats at every edge.
#include "cpu/dual_gemm.hpp"

#include <gtest/gtest.h>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "formats/numbers.hpp"
#include "reference/region.hpp"
#include "reference/tolerance.hpp"
#include "support/dual_gemm_case.hpp"
#include "thresher/error.hpp"

namespace thresher::cpu {
namespace {

using test::DualGemmCase;
using test::Layout;

constexpr std::array out_formats{Format::fp16, Format::bf16, Format::fp32};

std::string describe(const DualGemmProblem& p, const std::string& strategy) {
  return strategy + " " + std::to_string(p.m) + "x" + std::to_string(p.n) + "x" + std::to_string(p.k) + " a " +
         std::string(name(p.a)) + " b " + std::string(name(p.b)) + " out " + std::string(name(p.out)) + " " +
         std::string(name(p.activation.kind));
}

/// A workspace whose content before the run must not matter, with a guard behind it.
class Workspace {
 public:
  explicit Workspace(std::size_t bytes) : bytes_(bytes), memory_(bytes + alignment + guard_bytes, std::byte{0xFF}) {}
  [[nodiscard]] void* data() {
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
    return memory_.data() + (alignment - address % alignment) % alignment;
  }
  [[nodiscard]] bool guard_intact() {
    const std::byte* guard = static_cast<std::byte*>(data()) + bytes_;
    return std::all_of(guard, guard + guard_bytes, [](std::byte byte) { return byte == std::byte{0xFF}; });
  }

 private:
  static constexpr std::size_t alignment = 64;
  static constexpr std::size_t guard_bytes = 256;
  std::size_t bytes_;
  std::vector<std::byte> memory_;
};

void run(const std::string& strategy, DualGemmCase& problem_case, int threads = 1) {
  const auto kernel = plan_dual_gemm(strategy, problem_case.problem, threads);
  Workspace workspace(kernel->workspace_bytes());
  kernel->run(problem_case.a.view(), problem_case.b1_gate.view(), problem_case.b2_up.view(), problem_case.c.view(),
              workspace.data());
  EXPECT_TRUE(workspace.guard_intact());
  EXPECT_TRUE(problem_case.c.gaps_intact());
}

testing::AssertionResult is_right(DualGemmCase& problem_case, reference::Rule rule) {
  const DualGemmProblem& problem = problem_case.problem;
  const reference::Verdict verdict =
      reference::judge_dual_gemm(problem, rule, problem_case.a.view(), problem_case.b1_gate.view(),
                                 problem_case.b2_up.view(), problem_case.c.view(), reference::whole(problem));
  return verdict.passed ? testing::AssertionSuccess() : testing::AssertionFailure() << verdict.explain();
}

void expect_right(const std::string& strategy, DualGemmCase problem_case,
                  reference::Rule rule = reference::Rule::general, int threads = 1) {
  SCOPED_TRACE(describe(problem_case.problem, strategy));
  run(strategy, problem_case, threads);
  EXPECT_TRUE(is_right(problem_case, rule));
}

class CpuDualGemm : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Strategy, CpuDualGemm, testing::ValuesIn(dual_gemm_strategies()),
                         [](const auto& parameter) { return parameter.param; });

/// K off every chunk, a multiple of what the formats ask for.
std::int64_t ragged_depth(Format a, Format b) {
  return std::max(format_traits(a).k_multiple, format_traits(b).k_multiple) == 16 ? 624 : 616;
}

TEST_P(CpuDualGemm, EveryMixOfFormatsIsRight) {
  for (const Format a : operand_formats) {
    for (const Format b : operand_formats) {
      for (const Format out : out_formats) {
        const DualGemmProblem problem{.m = 40, .n = 71, .k = ragged_depth(a, b), .a = a, .b = b, .out = out};
        expect_right(GetParam(), DualGemmCase::random(problem));
      }
    }
  }
}

TEST_P(CpuDualGemm, EveryEdgeShapeIsRight) {
  for (const std::int64_t m : {1, 7, 40, 64, 127, 128, 129}) {
    for (const std::int64_t n : {1, 65, 129}) {
      for (const std::int64_t k : {48, 528}) {
        for (const Format a : {Format::fp16, Format::nvfp4}) {
          expect_right(GetParam(), DualGemmCase::random({.m = m, .n = n, .k = k, .a = a, .b = Format::nvfp4}));
        }
      }
    }
  }
  expect_right(GetParam(), DualGemmCase::random({.m = 3, .n = 5, .k = 8}));
}

TEST_P(CpuDualGemm, SeveralChunksOfRowsAreRight) {
  for (const Format a : {Format::bf16, Format::nvfp4}) {
    expect_right(GetParam(), DualGemmCase::random({.m = 1100, .n = 150, .k = 1040, .a = a, .b = Format::nvfp4}),
                 reference::Rule::general, 2);
  }
}

TEST_P(CpuDualGemm, SmallIntegersMatchBitForBit) {
  for (const Format a : operand_formats) {
    for (const Format b : operand_formats) {
      for (const Format out : out_formats) {
        const DualGemmProblem problem{.m = 33, .n = 70, .k = ragged_depth(a, b), .a = a, .b = b, .out = out};
        expect_right(GetParam(), DualGemmCase::integers(problem), reference::Rule::exact);
      }
    }
  }
}

TEST_P(CpuDualGemm, EveryActivationIsRight) {
  for (const Activation activation :
       {Activation{.kind = ActivationKind::silu}, Activation{.kind = ActivationKind::gelu_tanh},
        Activation{.kind = ActivationKind::swiglu_clamped},
        Activation{.kind = ActivationKind::swiglu_clamped, .alpha = 1.0F, .limit = 2.0F, .up_offset = 0.5F}}) {
    for (const Format out : out_formats) {
      expect_right(GetParam(), DualGemmCase::random({.m = 21, .n = 37, .k = 96, .out = out, .activation = activation}));
    }
  }
}

TEST_P(CpuDualGemm, StridedRowsAndBlockedScalesAreRight) {
  for (const ScaleLayout scales : {ScaleLayout::row_major, ScaleLayout::blocked}) {
    for (const Format a : operand_formats) {
      for (const Format b : operand_formats) {
        const Layout layout{.row_gap = 6, .out_row_gap = 3, .scales = scales};
        const DualGemmProblem problem{.m = 35, .n = 150, .k = 1104, .a = a, .b = b};
        expect_right(GetParam(), DualGemmCase::random(problem, layout));
      }
    }
  }
}

TEST_P(CpuDualGemm, QuantizedOutputsAreRight) {
  for (const Format out : {Format::fp8_tensor, Format::fp8_row, Format::fp8_block, Format::nvfp4}) {
    for (const ScaleLayout scales : all_scale_layouts) {
      for (const bool powers_of_two : {false, true}) {
        const Layout layout{.out_row_gap = 16, .out_scales = scales, .out_powers_of_two = powers_of_two};
        const std::int64_t n = out == Format::fp8_block ? 256 : 272;
        const DualGemmProblem problem{.m = 37, .n = n, .k = 96, .a = Format::bf16, .b = Format::nvfp4, .out = out};
        expect_right(GetParam(), DualGemmCase::random(problem, layout), reference::Rule::general, 2);
      }
    }
    const DualGemmProblem problem{.m = 9, .n = 128, .k = 64, .out = out};
    expect_right(GetParam(), DualGemmCase::integers(problem), reference::Rule::exact);
  }
}

TEST_P(CpuDualGemm, GlobalScalesMayBeAbsent) {
  const Layout layout{.global_scales = false};
  expect_right(GetParam(),
               DualGemmCase::random({.m = 9, .n = 24, .k = 64, .a = Format::nvfp4, .b = Format::nvfp4}, layout));
}

TEST_P(CpuDualGemm, SwappingGateAndUpIsNoticed) {
  DualGemmCase swapped = DualGemmCase::random({.m = 16, .n = 16, .k = 64});
  std::swap(swapped.b1_gate, swapped.b2_up);
  run(GetParam(), swapped);
  std::swap(swapped.b1_gate, swapped.b2_up);
  EXPECT_FALSE(is_right(swapped, reference::Rule::general));
}

TEST_P(CpuDualGemm, NanScaleCodesMakeTheirRowsNan) {
  const DualGemmProblem problem{.m = 20, .n = 40, .k = 80, .a = Format::nvfp4, .b = Format::nvfp4};
  for (const std::uint8_t nan_code : {0x7F, 0xFF}) {
    DualGemmCase with_nan = DualGemmCase::random(problem);
    with_nan.a.set_scale(3, 2, nan_code);
    with_nan.b1_gate.set_scale(11, 0, nan_code);
    with_nan.b2_up.set_scale(39, 4, nan_code);
    run(GetParam(), with_nan);
    EXPECT_TRUE(is_right(with_nan, reference::Rule::general));
    for (std::int64_t row = 0; row < problem.m; ++row) {
      for (std::int64_t column = 0; column < problem.n; ++column) {
        const bool expected = row == 3 || column == 11 || column == 39;
        EXPECT_EQ(std::isnan(with_nan.c.value(row, column)), expected) << row << ", " << column;
      }
    }
  }
}

/// Puts NaN, Inf and -Inf into each operand in turn.
TEST_P(CpuDualGemm, NonFiniteOperandsGoWhereTheDefinitionSendsThem) {
  for (const Format a : operand_formats) {
    for (const Format b : operand_formats) {
      const DualGemmProblem problem{.m = 12, .n = 30, .k = 64, .a = a, .b = b};
      for (const float special : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                                  -std::numeric_limits<float>::infinity()}) {
        DualGemmCase in_a = DualGemmCase::random(problem);
        DualGemmCase in_b = DualGemmCase::random(problem);
        if (a != Format::nvfp4) {
          in_a.a.set_value(5, 17, special);
          expect_right(GetParam(), in_a);
        }
        if (b != Format::nvfp4) {
          in_b.b1_gate.set_value(29, 63, special);
          in_b.b2_up.set_value(2, 0, special);
          expect_right(GetParam(), in_b);
        }
      }
    }
  }
}

/// bf16 matrix instructions would take the small operands for zero, or flush their products.
TEST_P(CpuDualGemm, SubnormalOperandsAndProductsCount) {
  const std::array scales{std::array{0x1p-130F, 0x1p+110F}, std::array{0x1p+110F, 0x1p-130F},
                          std::array{0x1p-70F, 0x1p-62F}};
  for (const auto& [a_scale, b_scale] : scales) {
    const DualGemmProblem problem{.m = 10, .n = 20, .k = 64, .a = Format::bf16, .b = Format::bf16, .out = Format::fp32};
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    const auto of = [&](std::int64_t rows, float scale) {
      return test::Matrix::of_values(Format::bf16, rows, problem.k, 0,
                                     [&](std::int64_t, std::int64_t) { return normal(random) * scale; });
    };
    DualGemmCase small = DualGemmCase::random(problem);
    small.a = of(problem.m, a_scale);
    small.b1_gate = of(problem.n, b_scale);
    small.b2_up = test::Matrix::of_values(Format::bf16, problem.n, problem.k, 0, [&](std::int64_t, std::int64_t) {
      return normal(random) / a_scale;  // up near 1, so that C is near the gate
    });
    expect_right(GetParam(), small);
  }
}

TEST_P(CpuDualGemm, ASubnormalInAnyOperandCounts) {
  const DualGemmProblem problem{.m = 10, .n = 20, .k = 64, .a = Format::bf16, .b = Format::bf16, .out = Format::fp32};
  for (const bool in_gate : {true, false}) {
    DualGemmCase one = DualGemmCase::random(problem);
    for (std::int64_t k = 0; k < problem.k; ++k) {  // row 4 of A is large, row 6 of one weight subnormal
      one.a.set_value(4, k, 0x1p+110F);
      (in_gate ? one.b1_gate : one.b2_up).set_value(6, k, 0x1p-130F);
    }
    expect_right(GetParam(), one);
  }
}

#if defined(__SSE2__)
TEST_P(CpuDualGemm, TheCallersFlushingOfSubnormalsDoesNotReachTheResult) {
  const DualGemmProblem problem{.m = 10, .n = 20, .k = 64, .a = Format::bf16, .b = Format::bf16, .out = Format::fp32};
  DualGemmCase small = DualGemmCase::random(problem);
  const auto constant = [](std::int64_t rows, std::int64_t columns, float value) {
    return test::Matrix::of_values(Format::bf16, rows, columns, 0, [=](std::int64_t, std::int64_t) { return value; });
  };
  small.a = constant(problem.m, problem.k, 0x1.8p-130F);
  small.b1_gate = constant(problem.n, problem.k, 0x1p+124F);
  small.b2_up = constant(problem.n, problem.k, 0x1.4p+124F);
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8040U);  // flush to zero, subnormals are zero
  run(GetParam(), small, 1);
  const unsigned after = _mm_getcsr();
  _mm_setcsr(before);
  EXPECT_EQ(after & 0x8040U, 0x8040U);
  EXPECT_TRUE(is_right(small, reference::Rule::general));
}
#endif

TEST_P(CpuDualGemm, SmallestValuesOfFp16Count) {
  const DualGemmProblem problem{.m = 10, .n = 20, .k = 64, .out = Format::fp32};
  DualGemmCase small = DualGemmCase::random(problem);
  const auto subnormals = [](std::int64_t row, std::int64_t column) {
    return 0x1p-24F * static_cast<float>((row * 7 + column * 13) % 1024 - 512);
  };
  small.a = test::Matrix::of_values(Format::fp16, problem.m, problem.k, 0, subnormals);
  expect_right(GetParam(), small);
  small.b1_gate = test::Matrix::of_values(Format::fp16, problem.n, problem.k, 0, subnormals);
  expect_right(GetParam(), small);
}

TEST_P(CpuDualGemm, NoRowsWriteNothing) {
  DualGemmCase empty = DualGemmCase::random({.m = 0, .n = 16, .k = 32});
  EXPECT_NO_THROW(run(GetParam(), empty));
}

TEST_P(CpuDualGemm, RunsAreBitwiseEqual) {
  for (const Format a : {Format::fp16, Format::nvfp4}) {
    DualGemmCase problem_case = DualGemmCase::random({.m = 130, .n = 200, .k = 1040, .a = a, .b = Format::nvfp4});
    run(GetParam(), problem_case, 2);
    const std::vector<std::uint8_t> first = problem_case.c.bytes();
    for (int repeat = 0; repeat < 5; ++repeat) {
      problem_case.c.poison();
      run(GetParam(), problem_case, 2);
      EXPECT_EQ(problem_case.c.bytes(), first);
    }
  }
}

TEST_P(CpuDualGemm, AnyNumberOfThreadsIsRight) {
  for (const int threads : {0, 1, 3, 8}) {
    DualGemmCase problem_case =
        DualGemmCase::random({.m = 20, .n = 100, .k = 528, .a = Format::nvfp4, .b = Format::nvfp4});
    run(GetParam(), problem_case, threads);
    EXPECT_TRUE(is_right(problem_case, reference::Rule::general)) << threads;
  }
}

TEST_P(CpuDualGemm, OnePlanMayRunInSeveralThreadsAtOnce) {
  DualGemmCase problem_case = DualGemmCase::random({.m = 64, .n = 192, .k = 1040, .b = Format::nvfp4});
  const auto kernel = plan_dual_gemm(GetParam(), problem_case.problem, 2);
  run(GetParam(), problem_case, 2);
  const Tensor a = problem_case.a.view();
  const Tensor gate = problem_case.b1_gate.view();
  const Tensor up = problem_case.b2_up.view();
  std::vector<test::Matrix> outputs(4, problem_case.c);
  {
    std::vector<std::jthread> callers;
    for (test::Matrix& c : outputs) {
      callers.emplace_back([&kernel, &a, &gate, &up, &c] {
        Workspace workspace(kernel->workspace_bytes());
        for (int repeat = 0; repeat < 5; ++repeat) {
          c.poison();
          kernel->run(a, gate, up, c.view(), workspace.data());
        }
      });
    }
  }
  for (const test::Matrix& c : outputs) {
    EXPECT_EQ(c.bytes(), problem_case.c.bytes());
  }
}

TEST_P(CpuDualGemm, WeightsAreReadAnewInEveryRun) {
  DualGemmCase first = DualGemmCase::random({.m = 8, .n = 32, .k = 64, .b = Format::nvfp4});
  DualGemmCase second = DualGemmCase::random(first.problem, {}, 2);
  const auto kernel = plan_dual_gemm(GetParam(), first.problem, 1);
  Workspace workspace(kernel->workspace_bytes());
  kernel->run(first.a.view(), first.b1_gate.view(), first.b2_up.view(), first.c.view(), workspace.data());
  EXPECT_TRUE(is_right(first, reference::Rule::general));
  first.b1_gate.assign(second.b1_gate);
  kernel->run(first.a.view(), first.b1_gate.view(), first.b2_up.view(), first.c.view(), workspace.data());
  EXPECT_TRUE(is_right(first, reference::Rule::general));
}

TEST_P(CpuDualGemm, APlanTakesFewerRowsThanItWasMadeFor) {
  for (const std::int64_t rows : {1, 16, 40}) {
    DualGemmCase problem_case = DualGemmCase::random({.m = rows, .n = 72, .k = 528, .b = Format::nvfp4});
    DualGemmProblem planned = problem_case.problem;
    planned.m = 64;
    const auto kernel = plan_dual_gemm(GetParam(), planned, 2);
    Workspace workspace(kernel->workspace_bytes());
    kernel->run(problem_case.a.view(), problem_case.b1_gate.view(), problem_case.b2_up.view(), problem_case.c.view(),
                workspace.data());
    EXPECT_TRUE(workspace.guard_intact());
    EXPECT_TRUE(problem_case.c.gaps_intact());
    EXPECT_TRUE(is_right(problem_case, reference::Rule::general)) << rows;
  }
}

TEST(CpuDualGemmMemory, InterleavedKeepsNoDequantisedCopyOfTheWeights) {
  const DualGemmProblem problem{.m = 256, .n = 4096, .k = 7168, .a = Format::nvfp4, .b = Format::nvfp4};
  const std::size_t dequantised = static_cast<std::size_t>(problem.n * problem.k) * 2;
  EXPECT_LT(plan_dual_gemm("interleaved", problem, 2)->workspace_bytes(), dequantised / 4);
  EXPECT_GT(plan_dual_gemm("two_pass", problem, 2)->workspace_bytes(), 2 * dequantised);
}

TEST(CpuDualGemmPlan, AnUnknownStrategyIsRefused) {
  DualGemmCase any = DualGemmCase::random({.m = 1, .n = 8, .k = 8});
  EXPECT_THROW((void)plan_dual_gemm("sideways", any.problem), Error);
}

}  // namespace
}  // namespace thresher::cpu
