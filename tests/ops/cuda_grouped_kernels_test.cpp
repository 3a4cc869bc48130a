// The grouped strategies' kernels on a Hopper GPU, as their planned calls launch them, against the definition on the
// CPU: every layout of rows and every format, ragged and empty groups, graphs whose counts change, nonsense for bounds.
#include <fmt/format.h>
#include <gtest/gtest.h>

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

/// Kinds of operands that strategies are made for.
struct Operands {
  Format a;
  Format b;
  Format out;
};
constexpr Operands all_operands[] = {
    {Format::bf16, Format::bf16, Format::bf16},       {Format::fp16, Format::fp16, Format::fp16},
    {Format::fp16, Format::nvfp4, Format::fp16},      {Format::bf16, Format::nvfp4, Format::bf16},
    {Format::nvfp4, Format::nvfp4, Format::bf16},     {Format::fp8_tensor, Format::fp8_tensor, Format::bf16},
    {Format::fp8_row, Format::fp8_row, Format::fp16}, {Format::fp8_block, Format::fp8_block, Format::bf16}};

/// A test of each kind: their kernels take a while to compile.
using CudaGroupedKernelsOf = ::testing::TestWithParam<Operands>;
INSTANTIATE_TEST_SUITE_P(All, CudaGroupedKernelsOf, ::testing::ValuesIn(all_operands),
                         [](const auto& of) { return fmt::format("{}_with_{}", name(of.param.a), name(of.param.b)); });

GroupedProblem problem_of(const Operands& operands, bool is_dual) {
  GroupedProblem problem{
      .experts = 5, .rows = 301, .n = 200, .k = 528, .a = operands.a, .b = operands.b, .out = operands.out};
  if (is_dual) {
    problem.activation = Activation{};
  }
  return problem;
}

TEST_P(CudaGroupedKernelsOf, EveryLayoutAndFormat) {
  SKIP_WITHOUT_HOPPER();
  const Operands& operands = GetParam();
  for (const bool is_dual : {true, false}) {
    for (const RowLayout layout : all_row_layouts) {
      const GroupedProblem problem = with_layout(problem_of(operands, is_dual), layout);
      for_every_choice(problem, [&](const GroupedStrategy& strategy, const Knobs& knobs) {
        EXPECT_EQ(judged(problem, ragged_form(problem), strategy, knobs), "")
            << name(operands.a) << " with " << name(operands.b) << ", " << name(layout);
      });
    }
  }
}

/// Scales of 1 × 128 one behind the other for each 128 along K, as kernels for Hopper usually take them.
TEST(CudaGroupedKernels, ScalesThatLieColumnByColumn) {
  SKIP_WITHOUT_HOPPER();
  for (const RowLayout layout : all_row_layouts) {
    const GroupedProblem problem =
        with_layout(problem_of({Format::fp8_block, Format::fp8_block, Format::bf16}, true), layout);
    GroupedForm form = ragged_form(problem);
    form.layout.scales = ScaleLayout::column_major;
    for_every_choice(problem, [&](const GroupedStrategy& strategy, const Knobs& knobs) {
      EXPECT_EQ(judged(problem, form, strategy, knobs), "") << name(layout);
    });
  }
}

TEST_P(CudaGroupedKernelsOf, BiasesRowWeightsAndEveryActivation) {
  SKIP_WITHOUT_HOPPER();
  const Operands& operands = GetParam();
  for (const ActivationKind kind : {ActivationKind::gelu_tanh, ActivationKind::swiglu_clamped}) {
    for (const std::optional<GateUpOrder> order : {std::optional<GateUpOrder>{}, std::optional(GateUpOrder::up_first),
                                                   std::optional(GateUpOrder::interleaved)}) {
      GroupedProblem problem = problem_of(operands, true);
      if (problem.b == Format::fp8_block && order) {  // gate and up in one tensor may not share a scale
        if (*order == GateUpOrder::interleaved) {
          continue;
        }
        problem.n = 256;
      }
      problem.activation->kind = kind;
      problem.bias = true;
      problem.row_weights = true;
      problem.out = kind == ActivationKind::gelu_tanh ? Format::fp32 : operands.out;
      GroupedForm form = ragged_form(problem);
      form.order = order;
      form.bias_format = order ? Format::bf16 : Format::fp32;
      for_every_choice(problem, [&](const GroupedStrategy& strategy, const Knobs& knobs) {
        EXPECT_EQ(judged(problem, form, strategy, knobs), "") << name(kind);
      });
    }
  }
}

TEST_P(CudaGroupedKernelsOf, AnyNumberOfExperts) {
  SKIP_WITHOUT_HOPPER();
  const Operands& operands = GetParam();
  for (const std::int64_t experts : {1, 2, 31, 33, 128, 512, 1024}) {
    GroupedProblem problem = problem_of(operands, true);
    problem.experts = experts;
    problem.n = 40;
    problem.k = 80;
    for_every_choice(problem, [&](const GroupedStrategy& strategy, const Knobs& knobs) {
      EXPECT_EQ(judged(problem, ragged_form(problem), strategy, knobs), "") << experts;
    });
  }
}

TEST_P(CudaGroupedKernelsOf, EdgeShapes) {
  SKIP_WITHOUT_HOPPER();
  const Operands& operands = GetParam();
  for (const auto& [n, k] : {std::pair{1, 16}, {8, 16}, {24, 64}, {65, 80}, {136, 208}, {500, 1040}}) {
    for (const std::int64_t rows : {1, 2, 17, 64, 65, 129}) {
      GroupedProblem problem = problem_of(operands, rows % 2 == 1);
      problem.rows = rows;
      problem.n = n;
      problem.k = k;
      for_every_choice(problem, [&](const GroupedStrategy& strategy, const Knobs& knobs) {
        EXPECT_EQ(judged(problem, ragged_form(problem), strategy, knobs), "") << rows << "x" << n << "x" << k;
      });
    }
  }
}

TEST_P(CudaGroupedKernelsOf, TheSameBitsInAThousandRuns) {
  SKIP_WITHOUT_HOPPER();
  const Operands& operands = GetParam();
  GroupedProblem problem = problem_of(operands, true);
  problem.rows = 700;
  problem.n = 520;
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
      }
    }
  });
}

TEST_P(CudaGroupedKernelsOf, AGraphServesOtherCounts) {
  SKIP_WITHOUT_HOPPER();
  const Operands& operands = GetParam();
  for (const RowLayout layout : {RowLayout::packed, RowLayout::slots}) {
    const GroupedProblem problem = with_layout(problem_of(operands, true), layout);
    for_every_choice(problem, [&](const GroupedStrategy& strategy, const Knobs& knobs) {
      GroupedCase host(problem, ragged_form(problem));
      GpuRun run(host, strategy.plan(problem, knobs, device()));
      const runtime::Graph graph = runtime::Graph::capture(0, [&](Stream stream) { run.enqueue(stream); });
      const runtime::OwnedStream stream(0);
      const std::vector<std::vector<std::int32_t>> all_groups =
          layout == RowLayout::slots
              ? std::vector<std::vector<std::int32_t>>{{0, 0, 0, 0, 0}, {301, 1, 0, 64, 65}, {8, 9, 16, 17, 300}}
              : std::vector<std::vector<std::int32_t>>{
                    {0, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 301}, {3, 11, 20, 84, 213, 300}};
      for (const std::vector<std::int32_t>& groups : all_groups) {
        run.regroup(groups);
        run.poison();
        graph.launch(stream.get());
        stream.synchronize();
        EXPECT_EQ(run.judged(), "");
      }
    });
  }
}

TEST_P(CudaGroupedKernelsOf, NonsenseForBoundsTouchesNothingElse) {
  SKIP_WITHOUT_HOPPER();
  constexpr std::int32_t least = std::numeric_limits<std::int32_t>::min();
  constexpr std::int32_t most = std::numeric_limits<std::int32_t>::max();
  const Operands& operands = GetParam();
  for (const RowLayout layout : all_row_layouts) {
    const GroupedProblem problem = with_layout(problem_of(operands, true), layout);
    for_every_choice(problem, [&](const GroupedStrategy& strategy, const Knobs& knobs) {
      GroupedForm form = ragged_form(problem);
      for (std::size_t row = 0; row < form.row_ids.size(); row += 3) {
        form.row_ids[row] = row % 2 == 0 ? most : least;
      }
      GroupedCase host(problem, form);
      GpuRun run(host, strategy.plan(problem, knobs, device()));
      for (std::vector<std::int32_t> groups : {std::vector<std::int32_t>{least, most, 0, -1, 300, 5},
                                               {40, 20, 1000, 7, most, most},
                                               {most, most, least, least, 1, 2}}) {
        groups.resize(host.groups().size());
        run.regroup(groups);
        EXPECT_EQ(run.run_and_judge(), "") << name(layout);
      }
    });
  }
}

}  // namespace
}  // namespace thresher
