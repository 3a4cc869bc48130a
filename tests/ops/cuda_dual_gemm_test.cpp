// two_pass and the definition on a GPU, against the definition on the CPU.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/cuda_reference.hpp"
#include "support/gpu_dual_gemm_case.hpp"
#include "thresher/error.hpp"

namespace thresher {
namespace {

using test::DualGemmCase;
using test::Layout;
using test::OnGpu;

class Case : public test::GpuDualGemmCase {
 public:
  explicit Case(DualGemmCase of) : GpuDualGemmCase(std::move(of), {.strategy = "two_pass"}) {}
};

constexpr Format operand_formats[] = {Format::fp16, Format::bf16, Format::nvfp4};
constexpr Format output_formats[] = {Format::fp16, Format::bf16, Format::fp32};
constexpr ActivationKind activations[] = {ActivationKind::silu, ActivationKind::gelu_tanh,
                                          ActivationKind::swiglu_clamped};

TEST(CudaTwoPass, EveryMixOfFormats) {
  SKIP_WITHOUT_GPU();
  for (const Format a : operand_formats) {
    for (const Format b : operand_formats) {
      for (const Format out : output_formats) {
        const DualGemmProblem problem{.m = 33, .n = 72, .k = 160, .a = a, .b = b, .out = out};
        EXPECT_EQ(Case(DualGemmCase::random(problem)).run_and_judge(), "")
            << name(a) << " x " << name(b) << " -> " << name(out);
      }
    }
  }
}

TEST(CudaTwoPass, EveryActivation) {
  SKIP_WITHOUT_GPU();
  for (const ActivationKind kind : activations) {
    for (const Format out : output_formats) {
      const DualGemmProblem problem{
          .m = 20, .n = 64, .k = 256, .a = Format::nvfp4, .b = Format::bf16, .out = out, .activation = {.kind = kind}};
      EXPECT_EQ(Case(DualGemmCase::random(problem)).run_and_judge(), "") << name(kind) << " -> " << name(out);
    }
  }
}

TEST(CudaTwoPass, EdgeShapes) {
  SKIP_WITHOUT_GPU();
  for (const std::int64_t m : {1, 2, 40, 64, 127, 129}) {
    for (const auto& [n, k] : {std::pair{1, 16}, {3, 48}, {65, 16}, {127, 304}, {130, 112}}) {
      for (const Format format : {Format::fp16, Format::nvfp4}) {
        const DualGemmProblem problem{.m = m, .n = n, .k = k, .a = format, .b = format, .out = Format::fp16};
        EXPECT_EQ(Case(DualGemmCase::random(problem)).run_and_judge(), "")
            << m << "x" << n << "x" << k << " " << name(format);
      }
    }
  }
}

TEST(CudaTwoPass, NothingToDo) {
  SKIP_WITHOUT_GPU();
  EXPECT_EQ(Case(DualGemmCase::random({.m = 0, .n = 64, .k = 64})).run_and_judge(), "");
  EXPECT_EQ(Case(DualGemmCase::random({.m = 4, .n = 0, .k = 64})).run_and_judge(), "");
}

TEST(CudaTwoPass, BlockedScalesAndGlobalScales) {
  SKIP_WITHOUT_GPU();
  for (const ScaleLayout scales : {ScaleLayout::row_major, ScaleLayout::blocked}) {
    for (const bool global_scales : {false, true}) {
      const DualGemmProblem problem{
          .m = 131, .n = 200, .k = 208, .a = Format::nvfp4, .b = Format::nvfp4, .out = Format::fp32};
      const Layout layout{.scales = scales, .global_scales = global_scales};
      EXPECT_EQ(Case(DualGemmCase::random(problem, layout)).run_and_judge(), "");
    }
  }
}

TEST(CudaTwoPass, RowsWithGaps) {
  SKIP_WITHOUT_GPU();
  for (const Format a : operand_formats) {
    for (const Format b : operand_formats) {
      for (const std::int64_t gap : {2, 8, 16}) {
        const DualGemmProblem problem{.m = 19, .n = 48, .k = 96, .a = a, .b = b, .out = Format::bf16};
        const Layout layout{.row_gap = gap, .out_row_gap = gap + 1};
        EXPECT_EQ(Case(DualGemmCase::random(problem, layout)).run_and_judge(), "")
            << name(a) << " x " << name(b) << " + " << gap;
      }
    }
  }
}

TEST(CudaTwoPass, SmallIntegersMatchBitForBit) {
  SKIP_WITHOUT_GPU();
  for (const Format a : operand_formats) {
    for (const Format b : operand_formats) {
      for (const Format out : output_formats) {
        const DualGemmProblem problem{.m = 37, .n = 56, .k = 128, .a = a, .b = b, .out = out};
        EXPECT_EQ(Case(DualGemmCase::integers(problem)).run_and_judge(reference::Rule::exact), "")
            << name(a) << " x " << name(b) << " -> " << name(out);
      }
    }
  }
}

TEST(CudaTwoPass, NanAndInfGoWhereTheDefinitionSendsThem) {
  SKIP_WITHOUT_GPU();
  DualGemmCase quantised =
      DualGemmCase::random({.m = 9, .n = 24, .k = 64, .a = Format::nvfp4, .b = Format::nvfp4, .out = Format::fp16});
  quantised.a.set_scale(1, 1, 0x7F);
  quantised.b1_gate.set_scale(2, 1, 0xFF);
  EXPECT_EQ(Case(std::move(quantised)).run_and_judge(), "");

  constexpr float infinity = std::numeric_limits<float>::infinity();
  DualGemmCase plain = DualGemmCase::random({.m = 9, .n = 24, .k = 64, .a = Format::bf16, .b = Format::bf16});
  plain.a.set_value(3, 5, infinity);
  plain.a.set_value(4, 0, -infinity);
  plain.b2_up.set_value(7, 63, std::numeric_limits<float>::quiet_NaN());
  EXPECT_EQ(Case(std::move(plain)).run_and_judge(), "");
}

TEST(CudaTwoPass, TheSameBitsEveryTime) {
  SKIP_WITHOUT_GPU();
  const Case tested(DualGemmCase::random(
      {.m = 65, .n = 320, .k = 2048, .a = Format::nvfp4, .b = Format::nvfp4, .out = Format::fp32}));
  const DualGemm gemm = tested.planned();
  const OnGpu workspace(gemm.workspace_bytes());
  const auto once = [&](std::uint8_t before) {
    workspace.fill(before);
    tested.c.fill(before);
    gemm.run(Stream{}, tested.a.tensor(), tested.out, workspace.data());
    runtime::synchronize_device(0);
    return tested.c.download<std::uint8_t>();
  };
  const std::vector<std::uint8_t> first = once(0xFF);
  for (const std::uint8_t before : {0x00, 0x3C, 0x7F}) {
    EXPECT_EQ(once(before), first);
  }
}

TEST(CudaTwoPass, RunsInAGraphWithoutAllocating) {
  SKIP_WITHOUT_GPU();
  Case tested(
      DualGemmCase::random({.m = 48, .n = 128, .k = 256, .a = Format::bf16, .b = Format::nvfp4, .out = Format::bf16}));
  const DualGemm gemm = tested.planned();
  const OnGpu workspace(gemm.workspace_bytes());
  // The first run of the plan happens inside the capture: nothing may be left to be loaded or allocated by then.
  const runtime::Graph graph = runtime::Graph::capture(
      0, [&](Stream stream) { gemm.run(stream, tested.a.tensor(), tested.out, workspace.data()); });
  EXPECT_GE(graph.nodes(), 4U);
  const runtime::OwnedStream stream(0);
  for (int launch = 0; launch < 2; ++launch) {
    tested.c.fill(0xFF);
    workspace.fill(0xFF);
    graph.launch(stream.get());
    stream.synchronize();
    EXPECT_EQ(tested.judged(tested.c), "");
  }
}

TEST(CudaTwoPass, ThreadsAndStreamsShareAPlan) {
  SKIP_WITHOUT_GPU();
  Case tested(
      DualGemmCase::random({.m = 64, .n = 512, .k = 1024, .a = Format::fp16, .b = Format::nvfp4, .out = Format::fp16}));
  EXPECT_EQ(tested.shared_by_threads(), "");
}

TEST(CudaPack, TheCallersWeightsMayGo) {
  SKIP_WITHOUT_GPU();
  for (const Format format : operand_formats) {
    test::GpuDualGemmCase tested(
        DualGemmCase::random({.m = 16, .n = 96, .k = 128, .a = format, .b = format, .out = Format::fp16}), {}, true);
    const DualGemm gemm = tested.planned();
    tested.b1.spoil();
    tested.b2.spoil();
    const OnGpu workspace(gemm.workspace_bytes());
    gemm.run(Stream{}, tested.a.tensor(), tested.out, workspace.data());
    runtime::synchronize_device(0);
    EXPECT_EQ(tested.judged(tested.c), "") << name(format);
  }
}

template <class Act>
std::string sentence_of(Act act) {
  try {
    act();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what();
  }
  return "no error";
}

TEST(CudaTwoPass, PointersToTheWrongMemoryAreNamed) {
  SKIP_WITHOUT_GPU();
  const Case tested(DualGemmCase::random({.m = 8, .n = 16, .k = 32}));
  const DualGemm gemm = tested.planned();
  const OnGpu workspace(gemm.workspace_bytes());
  alignas(256) static std::uint8_t host_memory[1024];
  const std::string in_host_memory = " points to host memory, expected memory of GPU 0: copy it there first";
  Tensor a = tested.a.tensor();
  a.data = host_memory;
  EXPECT_EQ(sentence_of([&] { gemm.run(Stream{}, a, tested.out, workspace.data()); }), "a" + in_host_memory);
  Tensor c = tested.out;
  c.data = host_memory;
  EXPECT_EQ(sentence_of([&] { gemm.run(Stream{}, tested.a.tensor(), c, workspace.data()); }), "c" + in_host_memory);
  EXPECT_EQ(sentence_of([&] { gemm.run(Stream{}, tested.a.tensor(), tested.out, host_memory); }),
            "workspace" + in_host_memory);
  Tensor gate = tested.b1.tensor();
  gate.data = host_memory;
  EXPECT_EQ(sentence_of([&] { plan(Device::cuda(), tested.problem, gate, tested.b2.tensor()); }),
            "b1 (gate)" + in_host_memory);
  a = tested.a.tensor();
  a.data = static_cast<std::byte*>(a.data) + 2;
  const std::string unaligned = sentence_of([&] { gemm.run(Stream{}, a, tested.out, workspace.data()); });
  EXPECT_NE(unaligned.find("expected an address that is a multiple of 16 bytes"), std::string::npos) << unaligned;
}

TEST(CudaReference, IsTheDefinition) {
  SKIP_WITHOUT_GPU();
  for (const Format a : operand_formats) {
    for (const Format b : operand_formats) {
      for (const ActivationKind kind : activations) {
        const DualGemmProblem problem{.m = 21, .n = 35, .k = 80, .a = a, .b = b, .activation = {.kind = kind}};
        const Layout layout{.row_gap = 6, .scales = ScaleLayout::blocked};
        Case tested(DualGemmCase::random(problem, layout));
        const OnGpu out(static_cast<std::size_t>(problem.m * problem.n) * sizeof(double));
        test::on_gpu::reference_dual_gemm(Stream{}, problem, tested.a.tensor(), tested.b1.tensor(), tested.b2.tensor(),
                                          static_cast<double*>(out.data()));
        runtime::synchronize_device(0);
        EXPECT_TRUE(out.guards_intact());
        const std::vector<double> got = out.download<double>();
        const std::vector<double> want =
            reference::dual_gemm(problem, tested.host.a.view(), tested.host.b1_gate.view(), tested.host.b2_up.view());
        for (std::size_t i = 0; i < want.size(); ++i) {
          ASSERT_NEAR(got[i], want[i], 1e-12 * std::max(1.0, std::abs(want[i])))
              << name(a) << " x " << name(b) << " " << name(kind) << " at " << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace thresher
