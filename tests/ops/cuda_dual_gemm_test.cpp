// two_pass and the definition on a GPU, against the definition on the CPU.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>

#include "ops/cuda_reference.hpp"
#include "ops/cuda_weights.hpp"
#include "reference/dual_gemm.hpp"
#include "reference/tolerance.hpp"
#include "runtime/stream.hpp"
#include "support/dual_gemm_case.hpp"
#include "support/gpu.hpp"
#include "thresher/error.hpp"

namespace thresher {
namespace {

using test::DualGemmCase;
using test::Layout;
using test::OnGpu;

/// A copy of a CPU matrix in GPU memory.
class Operand {
 public:
  explicit Operand(const Tensor& host)
      : values_(bytes_at(host.data, ops::extent_bytes(host))),
        scales_(bytes_at(host.scales, scale_bytes_of(host))),
        global_scale_(bytes_at(host.global_scale, host.global_scale == nullptr ? 0 : sizeof(float))),
        gpu_(host) {
    gpu_.device = {DeviceKind::cuda, 0};
    gpu_.data = values_.data();
    gpu_.scales = host.scales == nullptr ? nullptr : static_cast<const std::uint8_t*>(scales_.data());
    gpu_.global_scale = host.global_scale == nullptr ? nullptr : static_cast<const float*>(global_scale_.data());
  }
  [[nodiscard]] const Tensor& tensor() const { return gpu_; }
  [[nodiscard]] bool guards_intact() const { return values_.guards_intact() && scales_.guards_intact(); }
  void spoil() const { values_.fill(0xFF); }

 private:
  static std::vector<std::uint8_t> bytes_at(const void* data, std::size_t bytes) {
    const auto* first = static_cast<const std::uint8_t*>(data);
    return {first, first + bytes};
  }
  static std::size_t scale_bytes_of(const Tensor& host) {
    return host.format == Format::nvfp4 ? scale_bytes(host.shape[0], host.shape[1], host.scale_layout) : 0;
  }
  OnGpu values_;
  OnGpu scales_;
  OnGpu global_scale_;
  Tensor gpu_;
};

/// How the two products of two_pass add up: on the matrix unit, or in plain float32 for fp16 with bf16.
reference::Accumulation accumulation(const DualGemmProblem& problem) {
  const bool is_mixed = problem.a != problem.b && problem.a != Format::nvfp4 && problem.b != Format::nvfp4;
  return is_mixed ? reference::Accumulation::float32 : reference::Accumulation::float32_truncated;
}

class Case {
 public:
  explicit Case(DualGemmCase of, bool packed = false)
      : host(std::move(of)),
        problem(host.problem),
        packed_(packed),
        a(host.a.view()),
        b1(host.b1_gate.view()),
        b2(host.b2_up.view()),
        c(host.c.bytes()) {
    out = host.c.view();
    out.device = {DeviceKind::cuda, 0};
    out.data = c.data();
  }

  [[nodiscard]] DualGemm planned() const {
    const Device device = Device::cuda();
    const PlanOptions two_pass{.strategy = "two_pass"};
    return packed_ ? plan(device, problem, pack(device, b1.tensor(), b2.tensor()), two_pass)
                   : plan(device, problem, b1.tensor(), b2.tensor(), two_pass);
  }

  /// Runs and judges. The workspace is full of NaN before.
  [[nodiscard]] std::string run_and_judge(reference::Rule rule = reference::Rule::general) {
    const DualGemm gemm = planned();
    const OnGpu workspace(gemm.workspace_bytes());
    workspace.fill(0xFF);
    const runtime::OwnedStream stream(0);
    gemm.run(stream.get(), a.tensor(), out, gemm.workspace_bytes() == 0 ? nullptr : workspace.data());
    stream.synchronize();
    return workspace.guards_intact() ? judged(c, rule) : "memory outside the workspace was written";
  }

  /// Empty when `result`, as large as C, is right and nothing around it or the operands was written.
  [[nodiscard]] std::string judged(const OnGpu& result, reference::Rule rule = reference::Rule::general) {
    if (!result.guards_intact() || !a.guards_intact() || !b1.guards_intact() || !b2.guards_intact()) {
      return "memory outside a buffer was written";
    }
    const Tensor c_host = host.c.view();
    runtime::copy(c_host.data, result.data(), result.bytes(), 0);
    if (!host.c.gaps_intact()) {
      return "a gap between rows was written";
    }
    const reference::Verdict verdict =
        reference::judge_dual_gemm(problem, rule, host.a.view(), host.b1_gate.view(), host.b2_up.view(), c_host,
                                   reference::whole(problem), accumulation(problem));
    return verdict.passed ? "" : verdict.explain();
  }

  DualGemmCase host;
  DualGemmProblem problem;

 private:
  bool packed_;

 public:
  Operand a;
  Operand b1;
  Operand b2;
  OnGpu c;
  Tensor out;
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
      for (const bool packed : {false, true}) {
        const DualGemmProblem problem{
            .m = 131, .n = 200, .k = 208, .a = Format::nvfp4, .b = Format::nvfp4, .out = Format::fp32};
        const Layout layout{.scales = scales, .global_scales = global_scales};
        EXPECT_EQ(Case(DualGemmCase::random(problem, layout), packed).run_and_judge(), "")
            << (packed ? "packed" : "raw");
      }
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
  const DualGemm gemm = tested.planned();
  std::vector<OnGpu> results;
  while (results.size() < 6) {
    results.emplace_back(tested.c.bytes());
  }
  std::vector<std::thread> threads;
  for (const OnGpu& result : results) {
    threads.emplace_back([&] {
      const runtime::OwnedStream stream(0);
      const OnGpu workspace(gemm.workspace_bytes());
      Tensor out = tested.out;
      out.data = result.data();
      for (int round = 0; round < 20; ++round) {
        gemm.run(stream.get(), tested.a.tensor(), out, workspace.data());
      }
      stream.synchronize();
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(tested.judged(results[0]), "");
  for (const OnGpu& result : results) {
    EXPECT_TRUE(result.guards_intact());
    EXPECT_EQ(result.download<std::uint16_t>(), results[0].download<std::uint16_t>());
  }
}

TEST(CudaPack, TheCallersWeightsMayGo) {
  SKIP_WITHOUT_GPU();
  for (const Format format : operand_formats) {
    Case tested(DualGemmCase::random({.m = 16, .n = 96, .k = 128, .a = format, .b = format, .out = Format::fp16}),
                true);
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
        ops::cuda_reference_dual_gemm(Stream{}, problem, tested.a.tensor(), tested.b1.tensor(), tested.b2.tensor(),
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
