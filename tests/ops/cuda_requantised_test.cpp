// Outputs in FP8 and NVFP4 on a Hopper GPU, of the grouped strategies' kernels and of the dense dual GEMM: codes, the
// scales that are found, and what lies beside both.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "support/gpu_dual_gemm_case.hpp"
#include "support/gpu_grouped_case.hpp"

namespace thresher {
namespace {

using test::device;
using test::for_every_choice;
using test::GpuRun;
using test::GroupedCase;
using test::GroupedForm;
using test::GroupedStrategy;
using test::judged;
using test::ragged_form;
using test::with_layout;

struct QuantizedOutput {
  Format a;
  Format b;
  Format out;
};
constexpr QuantizedOutput all_quantized[] = {{Format::bf16, Format::bf16, Format::fp8_block},
                                             {Format::fp16, Format::fp16, Format::fp8_block},
                                             {Format::fp8_tensor, Format::fp8_tensor, Format::fp8_block},
                                             {Format::fp8_row, Format::fp8_row, Format::fp8_block},
                                             {Format::fp8_block, Format::fp8_block, Format::fp8_block},
                                             {Format::bf16, Format::nvfp4, Format::fp8_block},
                                             {Format::bf16, Format::bf16, Format::fp8_tensor},
                                             {Format::fp8_tensor, Format::fp8_tensor, Format::fp8_tensor},
                                             {Format::fp8_row, Format::fp8_row, Format::fp8_tensor},
                                             {Format::bf16, Format::bf16, Format::fp8_row},
                                             {Format::fp8_row, Format::fp8_row, Format::fp8_row},
                                             {Format::bf16, Format::bf16, Format::nvfp4},
                                             {Format::bf16, Format::nvfp4, Format::nvfp4}};

/// A test of each: their kernels take a while to compile.
using CudaQuantizedOf = ::testing::TestWithParam<QuantizedOutput>;
INSTANTIATE_TEST_SUITE_P(All, CudaQuantizedOf, ::testing::ValuesIn(all_quantized), [](const auto& of) {
  return fmt::format("{}_with_{}_to_{}", name(of.param.a), name(of.param.b), name(of.param.out));
});

/// Of blocks several in a row; of one scale any number of outputs.
GroupedProblem quantized_problem(const QuantizedOutput& of, bool is_dual) {
  GroupedProblem problem{.experts = 5,
                         .rows = 301,
                         .n = of.out == Format::fp8_block ? 384
                              : of.out == Format::nvfp4   ? 208
                                                          : 200,
                         .k = 528,
                         .a = of.a,
                         .b = of.b,
                         .out = of.out};
  if (is_dual) {
    problem.activation = Activation{};
  }
  return problem;
}

/// Row-major scales as they are found, and such as lie otherwise, those of FP8 in powers of two.
std::vector<test::Layout> output_layouts(Format out) {
  if (out == Format::fp8_tensor) {
    return {{}, {.out_row_gap = 5}};
  }
  const ScaleLayout other = out == Format::nvfp4 ? ScaleLayout::blocked : ScaleLayout::column_major;
  return {{.out_row_gap = 48}, {.out_scales = other, .out_powers_of_two = true}};
}

TEST_P(CudaQuantizedOf, EveryLayoutOfRowsAndScales) {
  SKIP_WITHOUT_HOPPER();
  for (const bool is_dual : {true, false}) {
    for (const RowLayout layout : all_row_layouts) {
      const GroupedProblem problem = with_layout(quantized_problem(GetParam(), is_dual), layout);
      int choices = 0;
      for_every_choice(problem, [&](const GroupedStrategy& strategy, const Knobs& knobs) {
        ++choices;
        for (const test::Layout& scales : output_layouts(problem.out)) {
          GroupedForm form = ragged_form(problem);
          form.layout = scales;
          EXPECT_EQ(judged(problem, form, strategy, knobs), "") << name(layout);
        }
      });
      EXPECT_GT(choices, 0);
    }
  }
}

/// One row, some beside edges of tiles, and outputs of one block.
TEST_P(CudaQuantizedOf, EdgesOfTiles) {
  SKIP_WITHOUT_HOPPER();
  for (const std::int64_t rows : {1, 8, 31, 33, 63, 65, 129}) {
    GroupedProblem problem = quantized_problem(GetParam(), rows % 2 == 1);
    problem.experts = 2;
    problem.rows = rows;
    problem.n = problem.out == Format::fp8_block ? 128 : problem.out == Format::nvfp4 ? 80 : 65;
    problem.k = 144;
    for_every_choice(problem, [&](const GroupedStrategy& strategy, const Knobs& knobs) {
      EXPECT_EQ(judged(problem, ragged_form(problem), strategy, knobs), "") << rows;
    });
  }
}

TEST_P(CudaQuantizedOf, BiasesRowWeightsAndEveryActivation) {
  SKIP_WITHOUT_HOPPER();
  for (const ActivationKind kind : {ActivationKind::gelu_tanh, ActivationKind::swiglu_clamped}) {
    GroupedProblem problem = quantized_problem(GetParam(), true);
    problem.activation->kind = kind;
    problem.bias = true;
    problem.row_weights = true;
    for_every_choice(problem, [&](const GroupedStrategy& strategy, const Knobs& knobs) {
      EXPECT_EQ(judged(problem, ragged_form(problem), strategy, knobs), "") << name(kind);
    });
  }
}

TEST_P(CudaQuantizedOf, TheSameBitsInAThousandRuns) {
  SKIP_WITHOUT_HOPPER();
  for (const bool is_dual : {true, false}) {
    GroupedProblem problem = quantized_problem(GetParam(), is_dual);
    problem.rows = 700;
    for_every_choice(problem, [&](const GroupedStrategy& strategy, const Knobs& knobs) {
      GroupedCase host(problem, ragged_form(problem));
      GpuRun run(host, strategy.plan(problem, knobs, device()));
      ASSERT_EQ(run.run_and_judge(), "");
      const std::vector<std::uint8_t> first = run.bytes();
      for (int repeat = 0; repeat < 1000; ++repeat) {
        run.enqueue({});
        if (repeat % 50 == 49) {
          runtime::synchronize({}, 0);
          ASSERT_EQ(run.bytes(), first) << repeat;
          run.poison();
        }
      }
    });
  }
}

/// The operands that a Hopper GPU multiplies, and how.
struct DenseOperands {
  Format a;
  Format b;
  Numerics numerics = Numerics::exact;
};
constexpr DenseOperands all_dense[] = {{Format::bf16, Format::bf16},
                                       {Format::fp16, Format::fp16},
                                       {Format::fp8_tensor, Format::fp8_tensor},
                                       {Format::fp8_row, Format::fp8_row, Numerics::fast},
                                       {Format::fp8_block, Format::fp8_block},
                                       {Format::bf16, Format::nvfp4},
                                       {Format::fp16, Format::nvfp4, Numerics::fast},
                                       {Format::nvfp4, Format::nvfp4},
                                       {Format::nvfp4, Format::nvfp4, Numerics::fast}};

using CudaQuantizedDense = ::testing::TestWithParam<DenseOperands>;
INSTANTIATE_TEST_SUITE_P(All, CudaQuantizedDense, ::testing::ValuesIn(all_dense), [](const auto& of) {
  return fmt::format("{}_with_{}_{}", name(of.param.a), name(of.param.b), name(of.param.numerics));
});

constexpr Format quantized_outs[] = {Format::fp8_tensor, Format::fp8_row, Format::fp8_block, Format::nvfp4};

DualGemmProblem dense_problem(const DenseOperands& operands, Format out, std::int64_t m) {
  return {.m = m, .n = 384, .k = 528, .a = operands.a, .b = operands.b, .out = out};
}

/// As plan chooses it, from matrices and from packed weights.
TEST_P(CudaQuantizedDense, EveryFormatAndLayout) {
  SKIP_WITHOUT_HOPPER();
  const DualGemmOptions options{.knobs = {{"numerics", std::string(name(GetParam().numerics))}}};
  for (const Format out : quantized_outs) {
    for (const std::int64_t m : {1, 9, 64, 300}) {
      for (test::Layout layout : output_layouts(out)) {
        layout.global_scales = false;
        const DualGemmProblem problem = dense_problem(GetParam(), out, m);
        EXPECT_EQ(
            test::GpuDualGemmCase(test::DualGemmCase::random(problem, layout), options, m % 2 == 0).run_and_judge(), "")
            << name(out) << ", " << m << " rows";
      }
    }
  }
}

/// Each by itself.
TEST_P(CudaQuantizedDense, EveryStrategyOfPlainOperands) {
  SKIP_WITHOUT_HOPPER();
  if (GetParam().b == Format::nvfp4) {
    return;
  }
  std::vector<const char*> strategies{"columns", "rows"};
  if (bits(GetParam().a) == 16) {
    strategies.insert(strategies.end(), {"interleaved", "sequential", "pingpong"});
  }
  for (const Format out : quantized_outs) {
    for (const char* const strategy : strategies) {
      DualGemmOptions options{.strategy = strategy};
      if (bits(GetParam().a) != 16) {  // the others have one numerics
        options.knobs = {{"numerics", std::string(name(GetParam().numerics))}};
      }
      EXPECT_EQ(test::GpuDualGemmCase(test::DualGemmCase::random(dense_problem(GetParam(), out, 130)), options)
                    .run_and_judge(),
                "")
          << strategy << " to " << name(out);
    }
  }
}

TEST_P(CudaQuantizedDense, TheSameBitsInAThousandRuns) {
  SKIP_WITHOUT_HOPPER();
  const DualGemmOptions options{.knobs = {{"numerics", std::string(name(GetParam().numerics))}}};
  for (const Format out : quantized_outs) {
    test::GpuDualGemmCase many(test::DualGemmCase::random(dense_problem(GetParam(), out, 200)), options);
    EXPECT_EQ(many.same_bits(1000), "") << name(out);
  }
}

/// Tokens that are prepared once are multiplied, and the outputs quantized, as often as asked.
TEST(CudaQuantizedPacked, PreparedTokens) {
  SKIP_WITHOUT_HOPPER();
  for (const Format out : quantized_outs) {
    const DenseOperands nvfp4{Format::nvfp4, Format::nvfp4};
    test::GpuDualGemmCase prepared(test::DualGemmCase::random(dense_problem(nvfp4, out, 33), {.global_scales = false}),
                                   {}, true);
    EXPECT_EQ(prepared.prepared_once_and_judged(), "") << name(out);
  }
}

}  // namespace
}  // namespace thresher
