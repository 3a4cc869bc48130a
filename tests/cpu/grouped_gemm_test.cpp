// The CPU's grouped products against the float64 definition: every layout, format and order, ragged and empty groups.
#include "cpu/grouped_gemm.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "reference/grouped_judgement.hpp"
#include "support/grouped_case.hpp"
#include "thresher/workspace.hpp"

namespace thresher::cpu {
namespace {

using reference::Rule;
using test::GroupedCase;
using test::GroupedForm;

std::vector<std::byte> workspace_of(const GroupedGemmKernel& kernel) {
  return std::vector<std::byte>(kernel.workspace_bytes() + 64, std::byte{0xFF});
}

GroupedStatus run(GroupedCase& of, int threads = 2) {
  const GroupedGemmKernel kernel(of.problem(), threads);
  std::vector<std::byte> memory = workspace_of(kernel);
  void* workspace = memory.data();
  std::size_t space = memory.size();
  std::align(64, kernel.workspace_bytes(), workspace, space);
  return kernel.run(weight_views(of.weights()), of.tensors(), workspace);
}

/// What experts own is right, and nothing else was written.
void expect_right(GroupedCase& of) {
  const reference::GroupedCall call = reference::grouped_call(of.problem(), of.weights(), of.tensors());
  EXPECT_EQ(run(of), call.owned.status);
  const reference::Verdict verdict = judge_grouped(call, Rule::general, reference::whole(call));
  EXPECT_TRUE(verdict.passed) << verdict.explain();
  EXPECT_TRUE(of.c().gaps_intact());
  for (std::size_t row = 0; row < call.owned.tokens.size(); ++row) {
    if (call.owned.tokens[row] < 0) {
      EXPECT_TRUE(of.is_untouched(static_cast<std::int64_t>(row))) << "row " << row << " was written";
    }
  }
}

GroupedProblem small(Format a, Format b) {
  return {.experts = 4,
          .rows = 90,
          .n = 40,
          .k = 96,
          .a = a,
          .b = b,
          .out = a == Format::bf16 ? Format::bf16 : Format::fp16,
          .activation = Activation{}};
}

TEST(CpuGroupedGemm, EveryFormatAndOrder) {
  for (const Format a : operand_formats) {
    for (const Format b : operand_formats) {
      for (int order = -1; order < 3; ++order) {
        SCOPED_TRACE(std::string(name(a)) + " " + std::string(name(b)) + " order " + std::to_string(order));
        GroupedForm form{.groups = {1, 18, 18, 19, 88}};
        if (order >= 0) {
          form.order = all_gate_up_orders[static_cast<std::size_t>(order)];
        }
        GroupedProblem problem = small(a, b);
        if (form.order && b == Format::fp8_block) {
          problem.n = 128;  // gate and up may not share a scale
          if (form.order == GateUpOrder::interleaved) {
            continue;
          }
        }
        GroupedCase of(problem, form);
        expect_right(of);
      }
    }
  }
}

TEST(CpuGroupedGemm, ColumnMajorScalesOfTokens) {
  for (const RowLayout layout : {RowLayout::packed, RowLayout::slots, RowLayout::gathered}) {
    SCOPED_TRACE(name(layout));
    GroupedProblem problem = small(Format::fp8_block, Format::fp8_block);
    problem.k = 272;
    problem.layout = layout;
    GroupedForm form{.groups = {1, 18, 18, 19, 88}, .layout = {.scales = ScaleLayout::column_major}};
    if (layout == RowLayout::slots) {
      problem.rows = 19;
      form.groups = {19, 0, 1, 18};
    }
    if (layout == RowLayout::gathered) {
      problem.tokens = 45;
      problem.row_ids_divisor = 2;
      for (std::int32_t i = 0; i < 90; ++i) {
        form.row_ids.push_back(i * 7 % 90);
      }
    }
    GroupedCase of(problem, form);
    expect_right(of);
  }
}

TEST(CpuGroupedGemm, OneMatrixAnExpert) {
  for (const Format a : operand_formats) {
    GroupedProblem problem = small(a, Format::nvfp4);
    problem.bias = problem.row_weights = true;
    for (const auto& activation : {std::optional<Activation>(), {Activation{.kind = ActivationKind::relu2}}}) {
      problem.activation = activation;
      GroupedCase of(problem, {.groups = {0, 30, 30, 31, 90}});
      expect_right(of);
    }
  }
}

TEST(CpuGroupedGemm, BiasAndRowWeightsInEveryForm) {
  for (const Format bias : {Format::fp32, Format::fp16, Format::bf16}) {
    for (const auto& order : {std::optional<GateUpOrder>(), std::optional(GateUpOrder::interleaved),
                              std::optional(GateUpOrder::up_first)}) {
      GroupedProblem problem = small(Format::bf16, Format::bf16);
      problem.n = 37;  // no multiple of anything
      problem.bias = problem.row_weights = true;
      problem.activation = Activation{.kind = ActivationKind::swiglu_clamped};
      GroupedCase of(problem, {.groups = {0, 17, 33, 33, 90}, .order = order, .bias_format = bias});
      expect_right(of);
    }
  }
}

TEST(CpuGroupedGemm, Slots) {
  for (const Format a : operand_formats) {
    GroupedProblem problem = small(a, Format::nvfp4);
    problem.layout = RowLayout::slots;
    problem.rows = 19;
    problem.row_weights = true;
    GroupedCase of(problem, {.groups = {19, 0, 1, 18}});
    expect_right(of);
  }
}

TEST(CpuGroupedGemm, QuantizedOutputs) {
  for (const Format out : {Format::fp8_tensor, Format::fp8_row, Format::fp8_block, Format::nvfp4}) {
    for (const RowLayout layout : all_row_layouts) {
      for (const ScaleLayout scales : all_scale_layouts) {
        SCOPED_TRACE(std::string(name(out)) + " " + std::string(name(layout)) + " " + std::string(name(scales)));
        GroupedProblem problem = small(Format::bf16, Format::nvfp4);
        problem.out = out;
        problem.n = out == Format::fp8_block ? 256 : 144;
        problem.rows = layout == RowLayout::slots ? 19 : 90;
        problem.layout = layout;
        problem.tokens = layout == RowLayout::gathered ? 50 : 0;
        problem.bias = true;
        GroupedForm form{.groups = {5, 40, 40, 60, 90}, .layout = {.out_scales = scales, .out_powers_of_two = true}};
        if (layout == RowLayout::slots) {
          form.groups = {19, 0, 1, 18};
        }
        for (std::int32_t i = 0; i < 90 && layout == RowLayout::gathered; ++i) {
          form.row_ids.push_back(i * 7 % 53 - 2);  // some of no token
        }
        GroupedCase of(problem, form);
        expect_right(of);
      }
    }
  }
}

TEST(CpuGroupedGemm, GatheredRows) {
  for (const Format a : operand_formats) {
    GroupedProblem problem = small(a, Format::nvfp4);
    problem.layout = RowLayout::gathered;
    problem.tokens = 11;
    problem.row_ids_divisor = 4;
    problem.bias = true;
    std::vector<std::int32_t> ids(90);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      ids[i] = static_cast<std::int32_t>(i * 7 % 50) - 3;  // some below 0, some above 43
    }
    GroupedCase of(problem, {.groups = {5, 40, 40, 60, 90}, .row_ids = ids});
    expect_right(of);
  }
}

TEST(CpuGroupedGemm, BlockedScalesOfWholeExperts) {
  GroupedProblem problem = small(Format::nvfp4, Format::nvfp4);
  problem.n = 128;
  GroupedCase of(problem, {.groups = {0, 3, 60, 60, 90}, .layout = {.scales = ScaleLayout::blocked}});
  expect_right(of);
}

TEST(CpuGroupedGemm, ManyRowsTakeSeveralChunks) {
  GroupedProblem problem = small(Format::bf16, Format::bf16);
  problem.rows = 700;
  problem.n = 72;
  problem.k = 640;
  GroupedCase of(problem, {.groups = {0, 600, 601, 640, 700}});
  expect_right(of);
}

TEST(CpuGroupedGemm, OffsetsThatMakeNoSenseAreLimited) {
  for (const std::vector<std::int32_t>& offsets : {std::vector<std::int32_t>{0, 60, 20, 90, 90},
                                                   {-5, 10, 2000000000, 30, 80},
                                                   {100, 90, 80, 70, 60},
                                                   {-1, -1, -1, -1, -1},
                                                   {0, 0, 0, 0, 0}}) {
    GroupedCase of(small(Format::bf16, Format::bf16), {.groups = offsets});
    expect_right(of);
  }
}

/// Threads take an expert each, with a workspace of their own.
TEST(CpuGroupedGemm, ManyExpertsAtOnce) {
  GroupedProblem problem = small(Format::fp16, Format::nvfp4);
  problem.experts = 96;
  problem.rows = 96 * 5;
  problem.k = 640;
  std::vector<std::int32_t> offsets(97);
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    offsets[i] = static_cast<std::int32_t>(5 * i);
  }
  GroupedCase of(problem, {.groups = offsets});
  const reference::GroupedCall call = reference::grouped_call(of.problem(), of.weights(), of.tensors());
  (void)run(of, 4);
  const reference::Verdict verdict = judge_grouped(call, Rule::general, reference::whole(call));
  EXPECT_TRUE(verdict.passed) << verdict.explain();
}

/// Values that bf16 matrix instructions take for zero.
TEST(CpuGroupedGemm, SubnormalsAreNotLost) {
  GroupedProblem problem = small(Format::bf16, Format::bf16);
  problem.out = Format::fp32;
  problem.activation.reset();
  GroupedCase of(problem, {.groups = {0, 30, 50, 70, 90}});
  for (std::int64_t row = 0; row < 90; ++row) {
    for (std::int64_t k = 0; k < problem.k; ++k) {
      of.a().set_pattern(row, k, static_cast<std::uint16_t>(row + 1));
    }
  }
  expect_right(of);
}

/// A NaN in one row stays there.
TEST(CpuGroupedGemm, ANeighboursNanStaysWhereItIs) {
  GroupedCase of(small(Format::bf16, Format::bf16), {.groups = {2, 18, 18, 19, 88}});
  for (const std::int64_t row : {0, 1, 18, 88, 89}) {
    of.a().set_pattern(row, 5, 0x7FC0);
  }
  expect_right(of);
}

TEST(CpuGroupedGemm, BitForBitTheSameAtAnyNumberOfThreads) {
  GroupedCase one(small(Format::fp16, Format::nvfp4), {.groups = {1, 18, 18, 19, 88}});
  GroupedCase other(small(Format::fp16, Format::nvfp4), {.groups = {1, 18, 18, 19, 88}});
  (void)run(one, 1);
  (void)run(other, 3);
  EXPECT_EQ(one.c().bytes(), other.c().bytes());
}

}  // namespace
}  // namespace thresher::cpu
