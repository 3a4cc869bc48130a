// The strategies tcgen05 and tcgen05_plain on a card with tensor memory: right, and bit for bit what the emulator
// computes, as it is and with the vendor's own checks of tensor memory compiled in. `scripts/check_on_b200.sh` runs
// this; elsewhere it is skipped.
#include <gtest/gtest.h>

#include <array>
#include <random>

#include "ops/cuda_call.hpp"
#include "strategies/emulated_case.hpp"
#include "strategies/gemm/registry.hpp"
#include "strategies/gemm/tensors.hpp"
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
using strategies::gemm::Product;
using test::DualGemmCase;
using test::Layout;
using test::Matrix;

const strategies::Strategy<strategies::gemm::ProductProblem>& strategy(const char* name) {
  return *strategies::find_strategy<strategies::gemm::ProductProblem>(
      strategies::gemm::strategies_of(Product::dual_gemm, DeviceKind::cuda), name);
}

/// What a strategy is tried with: formats of tokens and weights.
struct Tried {
  const char* strategy;
  Format a, b;
};
constexpr std::array tried{
    Tried{"tcgen05", Format::nvfp4, Format::nvfp4}, Tried{"tcgen05_plain", Format::bf16, Format::bf16},
    Tried{"tcgen05_plain", Format::fp16, Format::fp16}, Tried{"tcgen05_plain", Format::fp8_row, Format::fp8_row},
    Tried{"tcgen05_plain", Format::fp8_tensor, Format::fp8_row}};

/// Numbers between `low` and `high`, of both signs where `low` is less than 0.
Matrix between(Format format, OperandRole role, std::int64_t rows, std::int64_t k, float low, float high,
               std::mt19937& random) {
  std::uniform_real_distribution<float> numbers(low, high);
  const Matrix::Values value = [&](std::int64_t, std::int64_t) { return numbers(random); };
  return bits(format) == 8 ? Matrix::fp8(format, role, rows, k, {}, value)
                           : Matrix::of_values(format, rows, k, 0, value);
}

/// The same as of_sums, of operands without scales for groups.
DualGemmCase of_plain_sums(const DualGemmProblem& problem) {
  std::mt19937 random(7);
  return {problem, between(problem.a, OperandRole::tokens, problem.m, problem.k, 1, 2, random),
          between(problem.b, OperandRole::weights, problem.n, problem.k, 8, 16, random),
          between(problem.b, OperandRole::weights, problem.n, problem.k, -0.015625F, 0.015625F, random),
          Matrix::of_values(problem.out, problem.m, problem.n, 0, [](auto, auto) { return 0.0F; })};
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
  if (call.packing != nullptr) {
    ops::CudaCall(with_options(*call.packing, options), 0, all).run(stream.get(), all);
  }
  ops::CudaCall(with_options(call, options), 0, all).run(stream.get(), all);
  stream.synchronize();
  EXPECT_TRUE(c.guards_intact() && a.guards_intact() && gate.guards_intact() && up.guards_intact());
  return c.download<std::uint8_t>();
}

void expect_the_emulators_bits(const char* name, ScaleLayout scales, const std::vector<std::string>& options) {
  for (const auto& [problem, knobs] : strategy(name).samples()) {
    if (!problem.is_dense() || problem.activation->kind != ActivationKind::silu) {
      continue;  // other activations compute with the sums
    }
    const PlannedCall call = strategy(name).plan(problem, knobs, device_spec("B200"));
    DualGemmCase host =
        problem.b == Format::nvfp4 ? of_sums(problem.dual_gemm(), scales) : of_plain_sums(problem.dual_gemm());
    EXPECT_EQ(on_the_card(call, host, options), on_the_emulator(call, host))
        << name << " " << knobs.text() << " on " << problem.rows << "x" << problem.n << "x" << problem.k << ", scales "
        << thresher::name(scales);
  }
}

void expect_the_emulators_bits(const std::vector<std::string>& options) {
  expect_the_emulators_bits("tcgen05", ScaleLayout::row_major, options);
  expect_the_emulators_bits("tcgen05", ScaleLayout::blocked, options);
  expect_the_emulators_bits("tcgen05_plain", ScaleLayout::row_major, options);
}

TEST(CudaTcgen05, IsRightOnShapesAroundItsTiles) {
  SKIP_WITHOUT_TENSOR_MEMORY();
  for (const Tried& one : tried) {
    for (const std::int64_t m : {1, 16, 17, 100, 128, 129, 256, 300}) {
      for (const auto& [n, k] : {std::pair{1, 16}, {65, 272}, {128, 512}, {200, 1040}, {1000, 2048}}) {
        const DualGemmProblem problem{.m = m, .n = n, .k = k, .a = one.a, .b = one.b, .out = Format::fp16};
        for (const bool packed : {false, true}) {
          test::GpuDualGemmCase run(DualGemmCase::random(problem), {.strategy = one.strategy}, packed);
          EXPECT_EQ(run.run_and_judge(), "") << name(one.a) << " " << name(one.b) << m << "x" << n << "x" << k;
        }
      }
    }
  }
}

TEST(CudaTcgen05, IsRightWithEveryCandidate) {
  SKIP_WITHOUT_TENSOR_MEMORY();
  for (const Tried& one : tried) {
    const DualGemmProblem problem{.m = 300, .n = 1000, .k = 2048, .a = one.a, .b = one.b, .out = Format::bf16};
    for (const Knobs& knobs : strategy(one.strategy).candidates(problem, {}, device_spec("B200"))) {
      test::GpuDualGemmCase run(DualGemmCase::random(problem), {.strategy = one.strategy, .knobs = knobs});
      EXPECT_EQ(run.run_and_judge(), "") << name(one.a) << " " << name(one.b) << " " << knobs.text();
      EXPECT_EQ(run.same_bits(20), "") << name(one.a) << " " << name(one.b) << " " << knobs.text();
    }
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
