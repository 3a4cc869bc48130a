// The public API end to end on the CPU: plan, pack, run.
#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "formats/numbers.hpp"
#include "support/dual_gemm_case.hpp"
#include "thresher/thresher.hpp"

namespace thresher {
namespace {

/// A [2,16] of ones, B1 (gate) of ones, B2 (up) of threes: gate = 16, up = 48.
struct Operands {
  DualGemmProblem problem{.m = 2, .n = 8, .k = 16, .a = Format::bf16, .b = Format::bf16, .out = Format::fp32};
  std::vector<std::uint16_t> a = std::vector<std::uint16_t>(2 * 16, formats::float_to_bf16(1.0F));
  std::vector<std::uint16_t> gate = std::vector<std::uint16_t>(8 * 16, formats::float_to_bf16(1.0F));
  std::vector<std::uint16_t> up = std::vector<std::uint16_t>(8 * 16, formats::float_to_bf16(3.0F));
  std::vector<float> c = std::vector<float>(2 * 8, -1.0F);

  Tensor a_view() { return Tensor::contiguous(a.data(), Format::bf16, {2, 16}); }
  Tensor b1() { return Tensor::contiguous(gate.data(), Format::bf16, {8, 16}); }
  Tensor b2() { return Tensor::contiguous(up.data(), Format::bf16, {8, 16}); }
  Tensor c_view() { return Tensor::contiguous(c.data(), Format::fp32, {2, 8}); }
};

void run(const DualGemm& gemm, const Tensor& a, const Tensor& c) {
  std::vector<std::byte> memory(gemm.workspace_bytes() + 256);
  void* start = memory.data() + (256 - reinterpret_cast<std::uintptr_t>(memory.data()) % 256);
  gemm.run({}, a, c, start);
}

TEST(DualGemm, EveryStrategyActivatesTheFirstProduct) {
  const Device cpu = Device::cpu();
  for (const std::string& strategy : dual_gemm_strategies(cpu)) {
    Operands operands;
    const DualGemm gemm = plan(cpu, operands.problem, operands.b1(), operands.b2(), {.strategy = strategy});
    EXPECT_EQ(gemm.strategy(), strategy);
    run(gemm, operands.a_view(), operands.c_view());
    for (const float value : operands.c) {
      EXPECT_NEAR(value, 16.0F * 48.0F, 1e-3F) << strategy;  // silu(16)·48; swapped it would be silu(48)·16: the same
    }
  }
}

TEST(DualGemm, RunsInTwoPartsToo) {
  const Device cpu = Device::cpu();
  for (const std::string& strategy : dual_gemm_strategies(cpu)) {
    Operands operands;
    const DualGemm gemm = plan(cpu, operands.problem, operands.b1(), operands.b2(), {.strategy = strategy});
    std::vector<std::byte> memory(gemm.workspace_bytes() + 256);
    void* start = memory.data() + (256 - reinterpret_cast<std::uintptr_t>(memory.data()) % 256);
    gemm.prepare({}, operands.a_view(), start);
    gemm.run_prepared({}, operands.a_view(), operands.c_view(), start);
    EXPECT_NEAR(operands.c[0], 16.0F * 48.0F, 1e-3F) << strategy;
    EXPECT_THROW(gemm.prepare({}, operands.c_view(), start), Error);
    EXPECT_THROW(gemm.run_prepared({}, operands.a_view(), operands.a_view(), start), Error);
  }
}

TEST(DualGemm, SwappedGateAndUpIsNoticed) {
  Operands operands;
  operands.up.assign(operands.up.size(), formats::float_to_bf16(-3.0F));
  const Device cpu = Device::cpu();
  run(plan(cpu, operands.problem, operands.b1(), operands.b2()), operands.a_view(), operands.c_view());
  EXPECT_NEAR(operands.c[0], -16.0F * 48.0F, 1e-3F);
  run(plan(cpu, operands.problem, operands.b2(), operands.b1()), operands.a_view(), operands.c_view());
  EXPECT_NEAR(operands.c[0], 0.0F, 1e-3F);  // silu(-48) is almost 0
}

TEST(DualGemm, PackedWeightsGiveTheSameResult) {
  Operands operands;
  const Device cpu = Device::cpu();
  const PackedWeights weights = pack(cpu, operands.b1(), operands.b2());
  run(plan(cpu, operands.problem, weights), operands.a_view(), operands.c_view());
  EXPECT_NEAR(operands.c[0], 16.0F * 48.0F, 1e-3F);
}

TEST(DualGemm, FastNumericsAreRefusedOnTheCpu) {
  Operands operands;
  const Device cpu = Device::cpu();
  const auto refusal = [](const auto& call) {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::unsupported);
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string packing =
      refusal([&] { (void)pack(cpu, operands.b1(), operands.b2(), {.numerics = Numerics::fast}); });
  const std::string planning = refusal([&] {
    (void)plan(cpu, operands.problem, operands.b1(), operands.b2(), {.strategy = "", .knobs = {{"numerics", "fast"}}});
  });
  EXPECT_NE(packing.find("the CPU computes exactly"), std::string::npos) << packing;
  EXPECT_EQ(planning, packing);
}

TEST(DualGemm, NoTokensIsNoError) {
  Operands operands;
  operands.problem.m = 0;
  const DualGemm gemm = plan(Device::cpu(), operands.problem, operands.b1(), operands.b2());
  run(gemm, Tensor::contiguous(nullptr, Format::bf16, {0, 16}), Tensor::contiguous(nullptr, Format::fp32, {0, 8}));
}

TEST(DualGemm, DimensionsOfNoLengthAreNoError) {
  for (const std::string& strategy : dual_gemm_strategies(Device::cpu())) {
    for (const auto& [m, n] : {std::pair{3, 0}, std::pair{0, 20}, std::pair{0, 0}}) {
      const DualGemmProblem problem{.m = m, .n = n, .k = 16, .a = Format::bf16, .b = Format::bf16, .out = Format::fp32};
      test::DualGemmCase host = test::DualGemmCase::random(problem);
      const DualGemm gemm =
          plan(Device::cpu(), problem, host.b1_gate.view(), host.b2_up.view(), {.strategy = strategy});
      run(gemm, host.a.view(), host.c.view());
      EXPECT_TRUE(host.c.gaps_intact()) << strategy;
    }
  }
}

TEST(DualGemm, UnknownStrategyNamesTheKnownOnes) {
  Operands operands;
  try {
    static_cast<void>(plan(Device::cpu(), operands.problem, operands.b1(), operands.b2(), {.strategy = "fastest"}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "strategy fastest is not known: use one of interleaved, two_pass");
  }
}

TEST(DualGemm, NothingIsWrittenOnError) {
  Operands operands;
  const DualGemm gemm = plan(Device::cpu(), operands.problem, operands.b1(), operands.b2());
  Tensor wrong = operands.a_view();
  wrong.shape[1] = 8;
  EXPECT_THROW(run(gemm, wrong, operands.c_view()), Error);
  EXPECT_EQ(operands.c[0], -1.0F);
}

}  // namespace
}  // namespace thresher
