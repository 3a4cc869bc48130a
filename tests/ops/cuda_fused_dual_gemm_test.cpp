// The fused dual GEMM in BF16 and FP16 on a GPU, against the definition on the CPU.
#include <gtest/gtest.h>

#include <limits>

#include "support/gpu_dual_gemm_case.hpp"
#include "thresher/error.hpp"

#define SKIP_WITHOUT_HOPPER()                                        \
  SKIP_WITHOUT_GPU();                                                \
  if (!runtime::device_properties(0).is(Arch::sm_90a)) {             \
    GTEST_SKIP() << "the fused 16-bit dual GEMM is for Hopper GPUs"; \
  }                                                                  \
  static_assert(true)

namespace thresher {
namespace {

using test::DualGemmCase;
using test::Layout;
using test::OnGpu;

constexpr const char* strategies[] = {"sequential", "interleaved", "pingpong"};

/// A strategy with knobs: sets that together set each of them.
constexpr const char* knob_sets[] = {
    "interleaved block_outputs=128 math_warpgroups=2 warpgroup_tiles=1 stages=4 split_k=1 epilogue=simt",
    "interleaved block_outputs=48 math_warpgroups=2 warpgroup_tiles=1 stages=8 split_k=1 epilogue=tma",
    "interleaved block_outputs=128 math_warpgroups=2 warpgroup_tiles=1 stages=4 multicast=2 split_k=1 epilogue=tma",
    "interleaved block_outputs=96 math_warpgroups=2 warpgroup_tiles=1 stages=5 split_k=2 epilogue=tma",
    "interleaved block_outputs=128 math_warpgroups=2 warpgroup_tiles=1 stages=4 multicast=2 split_k=2 epilogue=simt",
    "interleaved block_outputs=96 math_warpgroups=2 warpgroup_tiles=2 stages=3 loader_registers=24 "
    "math_registers=240 split_k=1 persistent=true epilogue=tma",
    "interleaved block_outputs=64 math_warpgroups=1 warpgroup_tiles=1 block_k=128 stages=1 split_k=1 "
    "raster=columns_first epilogue=simt",
    "sequential block_outputs=128 math_warpgroups=2 warpgroup_tiles=1 stages=6 multicast=2 split_k=1 epilogue=tma",
    "sequential block_outputs=64 math_warpgroups=2 warpgroup_tiles=1 stages=2 split_k=1 persistent=true epilogue=simt",
    "pingpong block_outputs=128 math_warpgroups=2 warpgroup_tiles=1 stages=4 loader_registers=40 "
    "math_registers=232 epilogue=tma",
    "pingpong block_outputs=64 math_warpgroups=2 warpgroup_tiles=2 stages=6 epilogue=simt dependent_launch=false",
};

DualGemmOptions options_of(const std::string& strategy_and_knobs) {
  const std::size_t end = strategy_and_knobs.find(' ');
  return {.strategy = strategy_and_knobs.substr(0, end), .knobs = Knobs::parse(strategy_and_knobs.substr(end))};
}

std::string judged(const DualGemmCase& of, const DualGemmOptions& options,
                   reference::Rule rule = reference::Rule::general) {
  return test::GpuDualGemmCase(of, options).run_and_judge(rule);
}

DualGemmProblem bf16(std::int64_t m, std::int64_t n, std::int64_t k) {
  return {.m = m, .n = n, .k = k, .a = Format::bf16, .b = Format::bf16, .out = Format::bf16};
}

TEST(CudaFusedDualGemm, EdgeShapesInEveryStrategy) {
  SKIP_WITHOUT_HOPPER();
  for (const char* strategy : strategies) {
    for (const std::int64_t m : {1, 2, 40, 64, 127, 129, 300}) {
      for (const auto& [n, k] : {std::pair{1, 8}, {24, 64}, {65, 72}, {136, 200}, {500, 1032}}) {
        EXPECT_EQ(judged(DualGemmCase::random(bf16(m, n, k)), {.strategy = strategy}), "")
            << strategy << " " << m << "x" << n << "x" << k;
      }
    }
  }
}

TEST(CudaFusedDualGemm, EdgeShapesWithEverySetOfKnobs) {
  SKIP_WITHOUT_HOPPER();
  for (const char* knobs : knob_sets) {
    for (const std::int64_t m : {1, 129, 257, 600}) {
      for (const auto& [n, k] : {std::pair{24, 136}, {1000, 520}}) {
        EXPECT_EQ(judged(DualGemmCase::random(bf16(m, n, k)), options_of(knobs)), "")
            << knobs << " " << m << "x" << n << "x" << k;
      }
    }
  }
}

TEST(CudaFusedDualGemm, EveryFormatAndActivation) {
  SKIP_WITHOUT_HOPPER();
  for (const Format operand : {Format::fp16, Format::bf16}) {
    for (const Format out : {Format::fp16, Format::bf16, Format::fp32}) {
      for (const ActivationKind kind :
           {ActivationKind::silu, ActivationKind::gelu_tanh, ActivationKind::swiglu_clamped}) {
        const DualGemmProblem problem{
            .m = 70, .n = 200, .k = 264, .a = operand, .b = operand, .out = out, .activation = {.kind = kind}};
        EXPECT_EQ(judged(DualGemmCase::random(problem), {.strategy = "interleaved"}), "")
            << name(operand) << " -> " << name(out) << " " << name(kind);
      }
    }
  }
}

TEST(CudaFusedDualGemm, SmallIntegersMatchBitForBit) {
  SKIP_WITHOUT_HOPPER();
  for (const char* knobs : knob_sets) {
    EXPECT_EQ(judged(DualGemmCase::integers(bf16(150, 264, 520)), options_of(knobs), reference::Rule::exact), "")
        << knobs;
  }
}

TEST(CudaFusedDualGemm, RowsWithGapsAndOutputsOffTheGrid) {
  SKIP_WITHOUT_HOPPER();
  for (const char* strategy : strategies) {
    for (const std::int64_t out_gap : {0, 1, 8}) {
      const Layout layout{.row_gap = 8, .out_row_gap = out_gap};
      EXPECT_EQ(judged(DualGemmCase::random(bf16(131, 248, 96), layout), {.strategy = strategy}), "")
          << strategy << " + " << out_gap;
    }
  }
}

TEST(CudaFusedDualGemm, NanAndInfGoWhereTheDefinitionSendsThem) {
  SKIP_WITHOUT_HOPPER();
  for (const char* strategy : strategies) {
    DualGemmCase host = DualGemmCase::random(bf16(9, 24, 64));
    constexpr float infinity = std::numeric_limits<float>::infinity();
    host.a.set_value(3, 5, infinity);
    host.a.set_value(4, 0, -infinity);
    host.b2_up.set_value(7, 63, std::numeric_limits<float>::quiet_NaN());
    EXPECT_EQ(judged(host, {.strategy = strategy}), "") << strategy;
  }
}

TEST(CudaFusedDualGemm, TheSameBitsInAThousandRuns) {
  SKIP_WITHOUT_HOPPER();
  for (const char* knobs : knob_sets) {
    test::GpuDualGemmCase tested(DualGemmCase::random(bf16(300, 520, 1040)), options_of(knobs));
    EXPECT_EQ(tested.same_bits(1000), "") << knobs;
  }
}

TEST(CudaFusedDualGemm, RunsInAGraphWithoutAllocating) {
  SKIP_WITHOUT_HOPPER();
  for (const std::int64_t m : {48, 200}) {  // with and without a dependent launch
    test::GpuDualGemmCase tested(DualGemmCase::random(bf16(m, 136, 264)), {.strategy = "interleaved"});
    const DualGemm gemm = tested.planned();
    EXPECT_EQ(gemm.workspace_bytes(), 0U);
    const runtime::Graph graph = runtime::Graph::capture(0, [&](Stream stream) {
      gemm.run(stream, tested.a.tensor(), tested.out);
      gemm.run(stream, tested.a.tensor(), tested.out);
    });
    EXPECT_EQ(graph.nodes(), 2U);
    const runtime::OwnedStream stream(0);
    for (int launch = 0; launch < 2; ++launch) {
      tested.c.fill(0xFF);
      graph.launch(stream.get());
      stream.synchronize();
      EXPECT_EQ(tested.judged(tested.c), "");
    }
  }
}

TEST(CudaFusedDualGemm, ThreadsAndStreamsShareAPlan) {
  SKIP_WITHOUT_HOPPER();
  EXPECT_EQ(test::GpuDualGemmCase(DualGemmCase::random(bf16(64, 512, 1024))).shared_by_threads(), "");
}

TEST(CudaFusedDualGemm, IsTheDefaultAndGivesWayToTheLibrary) {
  SKIP_WITHOUT_HOPPER();
  const test::GpuDualGemmCase fused(DualGemmCase::random(bf16(64, 96, 128)));
  EXPECT_EQ(fused.planned().strategy(), "interleaved");
  const DualGemmCase odd_rows = DualGemmCase::random(bf16(64, 96, 128), {.row_gap = 2});
  EXPECT_EQ(test::GpuDualGemmCase(odd_rows).planned().strategy(), "two_pass");
  EXPECT_THROW(static_cast<void>(test::GpuDualGemmCase(odd_rows, {.strategy = "interleaved"}).planned()), Error);
}

/// Every number of rows up to the planned one, with the bits of a plan for that many.
TEST(CudaDualGemm, APlanServesFewerRows) {
  SKIP_WITHOUT_HOPPER();
  for (const char* strategy : {"", "two_pass"}) {
    for (const Format weights : {Format::bf16, Format::nvfp4}) {
      for (const std::int64_t rows : {1, 8, 40, 129, 300}) {
        DualGemmProblem problem = bf16(rows, 264, 528);
        problem.b = weights;
        test::GpuDualGemmCase tested(DualGemmCase::random(problem), {.strategy = strategy});
        problem.m = 300;
        const DualGemm gemm =
            plan(Device::cuda(), problem, tested.b1.tensor(), tested.b2.tensor(), {.strategy = strategy});
        const runtime::DeviceBuffer workspace(0, gemm.workspace_bytes());
        gemm.run(Stream{}, tested.a.tensor(), tested.out, workspace.data());
        runtime::synchronize({}, 0);
        EXPECT_EQ(tested.judged(tested.c), "") << strategy << " " << rows << " rows of " << name(weights);
      }
    }
  }
}

TEST(CudaFusedDualGemm, RowsThatTheCopyEngineCannotAddressAreNamed) {
  SKIP_WITHOUT_HOPPER();
  const test::GpuDualGemmCase tested(DualGemmCase::random(bf16(16, 64, 64), {.row_gap = 8}));
  const DualGemm gemm = tested.planned();
  Tensor a = tested.a.tensor();
  a.strides[0] = 68;
  try {
    gemm.run(Stream{}, a, tested.out);
    FAIL() << "not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_STREQ(error.what(), "a has rows 68 elements apart, this plan needs a multiple of 8: pad them");
  }
}

}  // namespace
}  // namespace thresher
