// The strategy tcgen05 on a card with tensor memory: right, and bit for bit what the emulator computes, as it is and
// with the vendor's own checks of tensor memory compiled in. `scripts/check_on_b200.sh` runs this; elsewhere it is
// skipped.
#include <gtest/gtest.h>

#include <random>

#include "ops/cuda_call.hpp"
#include "strategies/dual_gemm/registry.hpp"
#include "strategies/dual_gemm/tensors.hpp"
#include "strategies/emulated_case.hpp"
#include "support/gpu_dual_gemm_case.hpp"

#define SKIP_WITHOUT_TENSOR_MEMORY()                                                                         \
  SKIP_WITHOUT_GPU();                                                                                        \
  if (!runtime::device_properties(0).is(Arch::sm_100f)) {                                                    \
    GTEST_SKIP() << "GPU 0 is of " << runtime::device_properties(0).arch() << ", not of sm_100a or sm_103a"; \
  }                                                                                                          \
  static_assert(true)

namespace thresher {
namespace {

using strategies::CallTensors;
using strategies::KernelLaunch;
using strategies::PlannedCall;
using test::DualGemmCase;
using test::Layout;
using test::Matrix;

const strategies::Strategy<DualGemmProblem>& strategy() {
  return *strategies::find_strategy<DualGemmProblem>(strategies::dual_gemm::strategies_of(DeviceKind::cuda), "tcgen05");
}

/// Gates so large that the activation leaves them as they are: nothing is left of the outputs but the sums' bits. Ups
/// of both signs, scales of many sizes, so that sums are cut as the matrix unit cuts them; outputs that fp16 holds.
DualGemmCase of_sums(DualGemmProblem problem, ScaleLayout scales) {
  problem.activation = {};
  std::mt19937 random(7);
  const Layout layout{.scales = scales, .global_scales = false};
  const auto code = [&random](std::int64_t, std::int64_t) { return static_cast<std::uint8_t>(random() % 16); };
  const auto positive = [&random](std::int64_t, std::int64_t) { return static_cast<std::uint8_t>(random() % 8); };
  const auto scale = [&random](std::int64_t, std::int64_t) { return static_cast<std::uint8_t>(0x20 + random() % 16); };
  return {problem, Matrix::nvfp4(problem.m, problem.k, layout, positive, scale, 1),
          Matrix::nvfp4(problem.n, problem.k, layout, positive, scale, 1),
          Matrix::nvfp4(problem.n, problem.k, layout, code, scale, 1),
          Matrix::of_values(problem.out, problem.m, problem.n, 0, [](auto, auto) { return 0.0F; })};
}

std::vector<std::uint8_t> on_the_emulator(const PlannedCall& call, DualGemmCase host) {
  host.c.poison();
  const emulator::Report report = test::emulate(call, host, 1);
  EXPECT_TRUE(report.clean());
  return host.c.bytes();
}

/// With `options` for the compiler beyond the program's own.
PlannedCall with_options(PlannedCall call, const std::vector<std::string>& options) {
  for (strategies::Step& step : call.steps) {
    auto& own = std::get<KernelLaunch>(step).program.options;
    own.insert(own.end(), options.begin(), options.end());
  }
  return call;
}

std::vector<std::uint8_t> on_the_card(const PlannedCall& call, DualGemmCase& host,
                                      const std::vector<std::string>& options) {
  const test::GpuOperand a(host.a.view());
  const test::GpuOperand gate(host.b1_gate.view());
  const test::GpuOperand up(host.b2_up.view());
  const test::OnGpu c(host.c.bytes().size());
  c.fill(0xFF);
  Tensor out = host.c.view();
  out.device = {DeviceKind::cuda, 0};
  out.data = c.data();
  const std::vector<Tensor> tensors{a.tensor(), gate.tensor(), up.tensor(), out};
  const runtime::DeviceBuffer packed(0, call.packed_bytes());
  const runtime::DeviceBuffer workspace(0, call.workspace_bytes());
  const CallTensors all{tensors, workspace.data(), packed.data()};
  const runtime::OwnedStream stream(0);
  ops::CudaCall(with_options(*call.packing, options), 0, all).run(stream.get(), all);
  ops::CudaCall(with_options(call, options), 0, all).run(stream.get(), all);
  stream.synchronize();
  EXPECT_TRUE(c.guards_intact() && a.guards_intact() && gate.guards_intact() && up.guards_intact());
  return c.download<std::uint8_t>();
}

void expect_the_emulators_bits(const std::vector<std::string>& options) {
  for (const ScaleLayout scales : {ScaleLayout::row_major, ScaleLayout::blocked}) {
    for (const auto& [problem, knobs] : strategy().samples()) {
      const PlannedCall call = strategy().plan(problem, knobs, device_spec("B200"));
      if (problem.activation.kind != ActivationKind::silu) {
        continue;  // others compute with the sums
      }
      DualGemmCase host = of_sums(problem, scales);
      EXPECT_EQ(on_the_card(call, host, options), on_the_emulator(call, host))
          << knobs.text() << " on " << problem.m << "x" << problem.n << "x" << problem.k << ", scales " << name(scales);
    }
  }
}

TEST(CudaTcgen05, IsRightOnShapesAroundItsTiles) {
  SKIP_WITHOUT_TENSOR_MEMORY();
  for (const std::int64_t m : {1, 16, 17, 100, 128, 129, 256, 300}) {
    for (const auto& [n, k] : {std::pair{1, 16}, {65, 272}, {128, 512}, {200, 1040}, {1000, 2048}}) {
      const DualGemmProblem problem{
          .m = m, .n = n, .k = k, .a = Format::nvfp4, .b = Format::nvfp4, .out = Format::fp16};
      for (const bool packed : {false, true}) {
        test::GpuDualGemmCase one(DualGemmCase::random(problem), {.strategy = "tcgen05"}, packed);
        EXPECT_EQ(one.run_and_judge(), "") << m << "x" << n << "x" << k;
      }
    }
  }
}

TEST(CudaTcgen05, IsRightWithEveryCandidate) {
  SKIP_WITHOUT_TENSOR_MEMORY();
  const DualGemmProblem problem{
      .m = 300, .n = 1000, .k = 2048, .a = Format::nvfp4, .b = Format::nvfp4, .out = Format::bf16};
  for (const Knobs& knobs : strategy().candidates(problem, {}, device_spec("B200"))) {
    test::GpuDualGemmCase one(DualGemmCase::random(problem), {.strategy = "tcgen05", .knobs = knobs});
    EXPECT_EQ(one.run_and_judge(), "") << knobs.text();
    EXPECT_EQ(one.same_bits(20), "") << knobs.text();
  }
}

TEST(CudaTcgen05, ComputesTheEmulatorsBits) {
  SKIP_WITHOUT_TENSOR_MEMORY();
  expect_the_emulators_bits({});
}

// NVIDIA's rules of lanes, columns, allocation and granules: what breaks one traps.
TEST(CudaTcgen05, BreaksNoRuleOfTensorMemory) {
  SKIP_WITHOUT_TENSOR_MEMORY();
  expect_the_emulators_bits({"--ptxas-options=-g-tmem-access-check"});
}

}  // namespace
}  // namespace thresher
