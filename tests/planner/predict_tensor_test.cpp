// Predictions of kernels whose sums lie in tensor memory: what bounds them, and between which times.
#include <gtest/gtest.h>

#include <cmath>

#include "planner/choose.hpp"
#include "planner/deviation.hpp"
#include "planner/planned.hpp"

namespace thresher::planner {
namespace {

using strategies::gemm::Product;
using testing::predicted;

DualGemmProblem nvfp4_problem(std::int64_t m, std::int64_t n = 4096, std::int64_t k = 7168) {
  return {.m = m, .n = n, .k = k, .a = Format::nvfp4, .b = Format::nvfp4, .out = Format::fp16};
}

Prediction on_b200(const DualGemmProblem& problem, const std::string& knobs) {
  return predicted(problem, "tcgen05", "unsigned_scales=true " + knobs, "B200");
}

/// B200 with one constant changed.
DeviceSpec with(Constant TensorUnitSpec::* member, double value) {
  DeviceSpec device = device_spec("B200");
  (device.tensor.*member).value = value;
  return device;
}

Prediction on(const DeviceSpec& device, const DualGemmProblem& problem, const std::string& knobs) {
  return predict(testing::planned(problem, "tcgen05", "unsigned_scales=true " + knobs, "B200").work, device);
}

// 28 steps of 28 KiB a block, of which 128 share what L2 delivers.
TEST(PredictTensor, NarrowTilesAreBoundByTheWayFromL2) {
  const Prediction prediction = on_b200(nvfp4_problem(256), "block_tokens=128 stages=8");
  EXPECT_EQ(prediction.bound, Bound::l2);
  EXPECT_NEAR(prediction.parts.main_us, 28 * 28672.0 * 128 / 16.9e6, 1e-9);
  EXPECT_EQ(prediction.blocks, 128);
  EXPECT_EQ(prediction.rounds, 1);
  EXPECT_NE(prediction.why.find("bound by L2 to shared memory: products 3.9, L2 to shared memory 6.1, DRAM 5.5"),
            std::string::npos)
      << prediction.why;
}

// 96 blocks do not ask for more than one multiprocessor's way allows, and 256 columns keep the matrix unit busy.
TEST(PredictTensor, WideTilesOfFewBlocksAreBoundByTheMatrixUnit) {
  const Prediction prediction = on_b200(nvfp4_problem(512, 3072, 7168), "block_tokens=256 stages=5");
  EXPECT_EQ(prediction.bound, Bound::matrix);
  EXPECT_NEAR(prediction.parts.main_us, 28 * 4 * 128 / 1.85 * 1e-3, 1e-9);
}

TEST(PredictTensor, FewTokensAreBoundByDram) {
  EXPECT_EQ(on_b200(nvfp4_problem(16), "block_tokens=16 stages=10").bound, Bound::dram);
}

TEST(PredictTensor, ShortCallsAreBoundByTheirPrologue) {
  const Prediction prediction = on_b200(nvfp4_problem(16, 256, 512), "block_tokens=16 stages=2");
  EXPECT_EQ(prediction.bound, Bound::launch);
  EXPECT_NE(prediction.why.find("bound by the prologue (launch, tensor memory, first loads)"), std::string::npos)
      << prediction.why;
}

TEST(PredictTensor, OneSlotWaitsForEachLoad) {
  const Prediction one = on_b200(nvfp4_problem(256), "block_tokens=128 stages=1");
  EXPECT_EQ(one.bound, Bound::memory);
  EXPECT_NEAR(one.parts.main_us, 28 * 0.84, 1e-9);
  EXPECT_LT(on_b200(nvfp4_problem(256), "block_tokens=128 stages=4").us(), one.us());
}

// Products of few columns wait for the 128 rows of weights that shared memory delivers.
TEST(PredictTensor, ProductsOfFewColumnsWaitForTheirOperands) {
  const auto products_us = [](int tokens) {
    const DeviceSpec fast = [] {
      DeviceSpec device = with(&TensorUnitSpec::card_bytes_per_us, 1e12);
      device.tensor.multiprocessor_bytes_per_us.value = 1e12;
      device.tensor.dram_bytes_per_us.value = 1e12;
      device.tensor.load_latency_us.value = 0;
      return device;
    }();
    return on(fast, nvfp4_problem(tokens), "stages=4 block_tokens=" + std::to_string(tokens)).parts.main_us;
  };
  const double clock_us = 28 * 4 / 1.85 * 1e-3;
  EXPECT_NEAR(products_us(64), 43 * clock_us, 1e-9);
  EXPECT_NEAR(products_us(96), 47 * 1.0 * clock_us, 2 * clock_us);
  EXPECT_NEAR(products_us(128), 64 * clock_us, 1e-9);
  EXPECT_NEAR(products_us(256), 128 * clock_us, 1e-9);
}

// 32 bytes of K an instruction, whatever they hold.
TEST(PredictTensor, ProductsOf16BitsAreAQuarterAsFast) {
  auto work = testing::planned(nvfp4_problem(512, 3072, 7168), "tcgen05",
                               "unsigned_scales=true block_tokens=256 stages=5", "B200")
                  .work;
  auto& kernel = std::get<strategies::TensorKernel>(work.parts.front());
  const double nvfp4 = predict(work, device_spec("B200")).parts.main_us;
  kernel.matrix_type = MatrixType::bits16;
  EXPECT_NEAR(predict(work, device_spec("B200")).parts.main_us, 4 * nvfp4, 1e-9);
}

TEST(PredictTensor, APersistentKernelStartsOnceAndFinishesUnderTheNextTile) {
  const Prediction apart = on_b200(nvfp4_problem(2048), "block_tokens=128 stages=7");
  const Prediction persistent = on_b200(nvfp4_problem(2048), "block_tokens=128 stages=7 persistent=true");
  EXPECT_EQ(apart.rounds, 7);
  EXPECT_NEAR(apart.parts.fill_us, 7 * persistent.parts.fill_us, 1e-9);
  EXPECT_NEAR(apart.parts.epilogue_us, 7 * persistent.parts.epilogue_us, 1e-9);
  EXPECT_NEAR(apart.parts.main_us, persistent.parts.main_us, 1e-9);
}

// Long tiles and short ones: the short fill what the long leave, and none ends before the longest.
TEST(PredictTensor, UnequalTilesFillTheCard) {
  const auto work =
      testing::planned(nvfp4_problem(256), "tcgen05", "unsigned_scales=true block_tokens=128 stages=8", "B200").work;
  auto kernel = std::get<strategies::TensorKernel>(work.parts.front());
  const auto main_us = [&] { return predict({{kernel}}, device_spec("B200")).parts.main_us; };
  const double equal = main_us();
  kernel.tiles.push_back(kernel.tiles.front());
  kernel.tiles.back().steps /= 2;
  kernel.tiles.back().count = 20;  // half a tile each on the 10 pairs that were idle
  const double filled = main_us();
  EXPECT_GT(filled, equal * 0.99);
  EXPECT_LT(filled, equal * 1.2);
}

TEST(PredictTensor, TheIntervalHoldsThePredictionAndWhatEachConstantDoesToIt) {
  for (const std::int64_t m : {16, 256, 512}) {
    for (const Knobs& knobs : strategies::find_strategy<strategies::gemm::ProductProblem>(
                                  strategies::gemm::strategies_of(Product::dual_gemm, DeviceKind::cuda), "tcgen05")
                                  ->candidates(nvfp4_problem(m), {}, device_spec("B200"))) {
      const auto work = testing::planned(nvfp4_problem(m), "tcgen05", knobs.text(), "B200").work;
      const Prediction prediction = predict(work, device_spec("B200"));
      ASSERT_TRUE(prediction.interval.has_value());
      EXPECT_TRUE(prediction.interval->contains(prediction.us())) << knobs.text();
      for (const TensorUnitField& field : tensor_unit_fields) {
        const Constant& constant = device_spec("B200").tensor.*field.member;
        EXPECT_TRUE(prediction.interval->contains(predict(work, with(field.member, constant.low)).us()))
            << field.name << " " << knobs.text();
        EXPECT_TRUE(prediction.interval->contains(predict(work, with(field.member, constant.high)).us()))
            << field.name << " " << knobs.text();
      }
    }
  }
}

TEST(PredictTensor, DeviationsAddAsIndependentOnesDo) {
  DeviceSpec device;
  device.tensor.launch_us = {1, 0, 4};
  device.tensor.prologue_us = {5, 1, 9};
  const auto sum = [](const DeviceSpec& of) { return of.tensor.launch_us.value + of.tensor.prologue_us.value; };
  const Deviation found = deviation_of(device, sum(device), sum);
  EXPECT_DOUBLE_EQ(found.up, 5);
  EXPECT_NEAR(found.down, std::sqrt(1 + 16), 1e-12);
}

TEST(PredictTensor, EveryConstantMatters) {
  const auto work =
      testing::planned(nvfp4_problem(512), "tcgen05", "unsigned_scales=true block_tokens=256 stages=5", "B200").work;
  DeviceSpec device = device_spec("B200");
  for (const TensorUnitField& field : tensor_unit_fields) {
    DeviceSpec other = device;
    Constant& constant = other.tensor.*field.member;
    // Ten times slower or longer, whichever way the constant counts.
    constant.value = field.unit == "us" || field.unit == "clocks" || field.unit == "times" ? 40 * constant.value
                                                                                           : constant.value / 40;
    EXPECT_GT(predict(work, other).us(), predict(work, device).us()) << field.name;
  }
}

TEST(PredictTensor, NoIntervalWhereTheCardWasMeasured) {
  DualGemmProblem problem = nvfp4_problem(256);
  problem.a = Format::fp16;
  EXPECT_FALSE(predicted(problem, "packed", "block_tokens=128").interval.has_value());
}

TEST(PredictTensor, BlackwellTakesTheStrategyThatItsTensorCoresAreMadeFor) {
  for (const char* device : {"B200", "GB300"}) {
    for (const std::int64_t m : {1, 64, 256, 512, 4096}) {
      const auto ranked = choose<strategies::gemm::ProductProblem>(
                              strategies::gemm::strategies_of(Product::dual_gemm, DeviceKind::cuda), nvfp4_problem(m),
                              {}, device_spec(device))
                              .ranked;
      ASSERT_FALSE(ranked.empty());
      EXPECT_EQ(ranked.front().strategy, "tcgen05") << device << " " << m;
      EXPECT_EQ(*ranked.front().knobs.find("unsigned_scales"), "false");
    }
  }
}

// A sustained clock holds where products bound a kernel, as on Hopper.
TEST(PredictTensor, AHotCardIsSlowerWhereTheMatrixUnitBounds) {
  const auto us = [](const char* knobs, Clocks clocks) {
    return predicted(nvfp4_problem(512, 3072, 7168), "tcgen05", std::string("unsigned_scales=true ") + knobs, "B200",
                     clocks)
        .parts.main_us;
  };
  EXPECT_NEAR(us("block_tokens=256 stages=5", Clocks::sustained) / us("block_tokens=256 stages=5", Clocks::burst),
              1.85 / 1.60, 1e-9);
  EXPECT_EQ(us("block_tokens=128 stages=8", Clocks::sustained), us("block_tokens=128 stages=8", Clocks::burst));
}

}  // namespace
}  // namespace thresher::planner
