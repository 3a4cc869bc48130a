// The 16-bit dual GEMM run by the emulator: every strategy and knob, ragged edges, many schedules. Right and clean.
#include <gtest/gtest.h>

#include "reference/dual_gemm.hpp"
#include "reference/tolerance.hpp"
#include "strategies/dual_gemm/fused/host/emulated.hpp"
#include "strategies/dual_gemm/fused/host/obstacles.hpp"
#include "strategies/dual_gemm/fused/program.hpp"
#include "support/dual_gemm_case.hpp"

namespace thresher::strategies::dual_gemm::fused {
namespace {

Format format_of(Number number) {
  return number == Number::fp16 ? Format::fp16 : number == Number::bf16 ? Format::bf16 : Format::fp32;
}

ActivationKind kind_of(ActivationCode code) {
  return code == ActivationCode::silu        ? ActivationKind::silu
         : code == ActivationCode::gelu_tanh ? ActivationKind::gelu_tanh
                                             : ActivationKind::swiglu_clamped;
}

class Emulated : public ::testing::TestWithParam<std::size_t> {
 protected:
  [[nodiscard]] static const Config& config() { return small_configs()[GetParam()]; }

  static void clean_and_right(std::int64_t m, std::int64_t n, std::int64_t k, std::uint64_t schedules) {
    const DualGemmProblem problem{.m = m,
                                  .n = n,
                                  .k = k,
                                  .a = format_of(config().operand),
                                  .b = format_of(config().operand),
                                  .out = format_of(config().output),
                                  .activation = {.kind = kind_of(config().activation)}};
    const HostKernel kernel = find_compiled_in(kernel_expression(config()));
    ASSERT_NE(kernel, nullptr);
    for (std::uint64_t seed = 0; seed < schedules; ++seed) {
      const test::Layout layout{.row_gap = seed % 2 == 0 ? 0 : 8, .out_row_gap = seed % 3 == 0 ? 0 : 8};
      test::DualGemmCase host = test::DualGemmCase::random(problem, layout, static_cast<unsigned>(seed + 1));
      const Tensor c = host.c.view();
      emulator::GlobalMemory memory;
      const auto matrix = [&](const char* name, const Tensor& tensor, emulator::Use use) {
        const std::int64_t elements = tensor.strides[0] * (tensor.shape[0] - 1) + tensor.shape[1];
        memory.add(name, tensor.data, static_cast<std::size_t>(elements * bits(tensor.format) / 8), use);
        return Matrix{reinterpret_cast<std::uintptr_t>(tensor.data), tensor.strides[0]};
      };
      const EmulatedProblem emulated{{m, n, k},
                                     matrix("a", host.a.view(), emulator::Use::input),
                                     matrix("b1", host.b1_gate.view(), emulator::Use::input),
                                     matrix("b2", host.b2_up.view(), emulator::Use::input),
                                     matrix("c", c, emulator::Use::output),
                                     problem.activation};
      emulator::Options options;
      options.schedule = emulator::Schedule::from_seed(seed);
      const emulator::Report report = emulate(kernel, config(), emulated, memory, options);
      for (const emulator::Finding& finding : report.findings) {
        ADD_FAILURE() << title(config()) << ", " << m << "x" << n << "x" << k << ": " << to_string(finding);
      }
      const reference::Verdict verdict = reference::judge_dual_gemm(
          problem, reference::Rule::general, host.a.view(), host.b1_gate.view(), host.b2_up.view(), c,
          reference::whole(problem), reference::Accumulation::float32_truncated);
      ASSERT_TRUE(host.c.gaps_intact());
      ASSERT_TRUE(verdict.passed) << title(config()) << ", " << m << "x" << n << "x" << k << ": " << verdict.explain();
    }
  }
};

TEST_P(Emulated, ConfigurationCanExist) { EXPECT_EQ(obstacles(config()), std::vector<std::string>{}); }
TEST_P(Emulated, OneTokenAndOneStepOfK) { clean_and_right(1, 24, 8, 4); }
TEST_P(Emulated, RaggedInEveryDimension) { clean_and_right(200, 72, 200, 8); }
TEST_P(Emulated, WholeTiles) { clean_and_right(128, 64, 256, 2); }
TEST_P(Emulated, OneBeyondATile) { clean_and_right(129, 136, 264, 2); }

INSTANTIATE_TEST_SUITE_P(AllConfigurations, Emulated, ::testing::Range(std::size_t{0}, small_configs().size()));

}  // namespace
}  // namespace thresher::strategies::dual_gemm::fused
