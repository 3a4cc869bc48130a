// What a layer of experts launches, as the driver sees it; there need be no GPU.
#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <thread>

#include "ops/recording_driver.hpp"
#include "runtime/known_places.hpp"
#include "runtime/nvrtc.hpp"
#include "strategies/moe_layer/params.hpp"
#include "thresher/thresher.hpp"

namespace thresher {
namespace {

using testing::driver_record;
using testing::RecordedLaunch;

constexpr DeviceId gpu{DeviceKind::cuda, 0};

/// In the page that the driver says is the GPU's.
void* on_gpu(std::uintptr_t at) { return reinterpret_cast<void*>(testing::recorded_page_bytes + at); }

Tensor tensor_on_gpu(std::uintptr_t at, Format format, std::initializer_list<std::int64_t> shape) {
  return Tensor::contiguous(on_gpu(at), format, shape, gpu);
}

class LayerLaunches : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!runtime::nvrtc_status().problem.empty()) {
      GTEST_SKIP() << runtime::nvrtc_status().problem;
    }
    layer_ = plan(Device::cuda(0), problem(), gate_up(), down());
    driver_record() = {};
  }

  static MoeProblem problem() {
    return {.experts = 1, .tokens = 4, .top_k = 2, .hidden_size = 16, .intermediate_size = 16};
  }
  static GroupedWeights gate_up() {
    return {.b1 = tensor_on_gpu(0x400, Format::bf16, {1, 16, 16}),
            .b2 = tensor_on_gpu(0x600, Format::bf16, {1, 16, 16})};
  }
  static GroupedWeights down() { return {.b1 = tensor_on_gpu(0x800, Format::bf16, {1, 16, 16})}; }
  static MoeTensors tensors(std::int64_t tokens) {
    return {.x = tensor_on_gpu(0xA00, Format::bf16, {tokens, 16}),
            .topk_ids = tensor_on_gpu(0xB00, Format::int32, {tokens, 2}),
            .topk_weights = tensor_on_gpu(0xB80, Format::fp32, {tokens, 2}),
            .out = tensor_on_gpu(0xC00, Format::bf16, {tokens, 16})};
  }

  std::optional<MoeLayer> layer_{};
  void* workspace_ = on_gpu(0x80000);  // behind every tensor
};

/// Choices sorted and their rows gathered, gate and up, down, rows added up: each may start while the one before it
/// ends.
TEST_F(LayerLaunches, AreAChainOfDependentOnes) {
  layer_->run({}, tensors(4), workspace_);
  ASSERT_EQ(driver_record().launches.size(), 4U);
  for (const RecordedLaunch& launch : driver_record().launches) {
    EXPECT_TRUE(launch.dependent);
  }
  const RecordedLaunch& sorts = driver_record().launches.front();
  EXPECT_EQ(sorts.grid, (std::array{1U, 1U, 1U}));
  EXPECT_EQ(sorts.block[0], strategies::moe_layer::route_threads);
  EXPECT_EQ(sorts.shared_bytes, strategies::moe_layer::route_words(1, 8) * 4U);
  EXPECT_EQ(driver_record().launches.back().grid, (std::array{4U, 1U, 1U}));
}

/// Each of two blocks counts what it sorts; then each has as many that place a part of that and bring its rows.
TEST_F(LayerLaunches, MoreChoicesThanABlockSortsAreCountedAhead) {
  MoeProblem many = problem();
  many.tokens = 1;
  many.top_k = strategies::moe_layer::block_choices + 1;
  const MoeLayer layer = plan(Device::cuda(0), many, gate_up(), down());
  driver_record() = {};
  layer.run({},
            {.x = tensor_on_gpu(0xA00, Format::bf16, {1, 16}),
             .topk_ids = tensor_on_gpu(0xB00, Format::int32, {1, many.top_k}),
             .topk_weights = tensor_on_gpu(0xB80, Format::fp32, {1, many.top_k}),
             .out = tensor_on_gpu(0xA80, Format::bf16, {1, 16})},
            workspace_);
  ASSERT_EQ(driver_record().launches.size(), 5U);
  for (const RecordedLaunch& launch : driver_record().launches) {
    EXPECT_TRUE(launch.dependent);
  }
  constexpr unsigned parts = strategies::moe_layer::block_choices / strategies::moe_layer::max_part_choices;
  EXPECT_EQ(driver_record().launches[0].grid, (std::array{2U, 1U, 1U}));
  EXPECT_EQ(driver_record().launches[1].grid, (std::array{2U, parts, 1U}));
}

TEST_F(LayerLaunches, ProductsTellHowTheyWerePlanned) {
  for (const LayerProduct& product : {layer_->gate_up(), layer_->down()}) {
    EXPECT_NE(product.strategy(), "");
    EXPECT_GT(product.workspace_bytes(), 0U);
    EXPECT_LT(product.workspace_bytes(), layer_->workspace_bytes());
  }
}

TEST_F(LayerLaunches, OfNoTokensThereAreNone) {
  layer_->run({}, tensors(0), workspace_);
  EXPECT_TRUE(driver_record().launches.empty());
}

TEST_F(LayerLaunches, MemoryOfTheHostIsRefused) {
  std::array<std::int32_t, 64> on_host{};
  for (const auto change : {&MoeTensors::x, &MoeTensors::topk_ids, &MoeTensors::topk_weights, &MoeTensors::out}) {
    MoeTensors of = tensors(4);
    (of.*change).data = on_host.data();
    EXPECT_THROW(layer_->run({}, of, workspace_), Error);
    EXPECT_TRUE(driver_record().launches.empty());
  }
}

/// x, the choices, their weights, the output and the workspace: what the products are given lies in these.
TEST_F(LayerLaunches, TheDriverIsAskedForTheLayersOwnMemoryInEveryCall) {
  for (int call = 1; call <= 2; ++call) {
    layer_->run({}, tensors(4), workspace_);
    EXPECT_EQ(driver_record().asked_places, 5 * call);
  }
}

TEST_F(LayerLaunches, TheDriverIsAskedForNothingWhoseCallerKnowsIt) {
  const auto asked = [&] {
    const int before = driver_record().asked_places;
    layer_->run({}, tensors(4), workspace_);
    return driver_record().asked_places - before;
  };
  {
    const runtime::ValidatedPointers known;
    EXPECT_EQ(asked(), 0);
    EXPECT_EQ(asked(), 0);
    EXPECT_EQ(driver_record().launches.size(), 8U);
    int asked_by_another = 0;
    std::thread([&] { asked_by_another = asked(); }).join();
    EXPECT_EQ(asked_by_another, 5);
  }
  EXPECT_EQ(asked(), 5);
}

TEST_F(LayerLaunches, AProductThatNoStrategyTakesIsNamed) {
  MoeProblem problem = LayerLaunches::problem();
  problem.down = Format::fp8_row;
  GroupedWeights of_down{.b1 = tensor_on_gpu(0x800, Format::fp8_row, {1, 16, 16})};
  of_down.b1.describe_scales(OperandRole::weights);
  of_down.b1.scales.data = on_gpu(0xD00);
  try {
    (void)plan(Device::cuda(0), problem, gate_up(), of_down);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_EQ(std::string(error.what()).rfind("down: ", 0), 0U) << error.what();
  }
}

/// Gate and up of 16 bits, and down in FP8 with a scale a row, which no tile of the first product has all of: product,
/// quantizing, product, each of which may start while the one before it ends.
TEST_F(LayerLaunches, WhatLiesBetweenDenseProductsIsQuantizedBehindTheFirst) {
  Tensor down = tensor_on_gpu(0x800, Format::fp8_row, {16, 16});
  down.describe_scales(OperandRole::weights);
  down.scales.data = on_gpu(0xD00);
  const GatedMlp dense = plan(Device::cuda(0),
                              {.tokens = 4,
                               .hidden_size = 16,
                               .intermediate_size = 16,
                               .intermediate = Format::fp8_row,
                               .down = Format::fp8_row},
                              GatedMlpWeights{.gate = tensor_on_gpu(0x400, Format::bf16, {16, 16}),
                                              .up = tensor_on_gpu(0x600, Format::bf16, {16, 16}),
                                              .down = down});
  driver_record() = {};
  dense.run({}, tensor_on_gpu(0xA00, Format::bf16, {4, 16}), tensor_on_gpu(0xC00, Format::bf16, {4, 16}), workspace_);
  ASSERT_EQ(driver_record().launches.size(), 3U);
  for (const RecordedLaunch& launch : driver_record().launches) {
    EXPECT_TRUE(launch.dependent);
  }
  EXPECT_EQ(driver_record().launches[1].grid, (std::array{4U, 1U, 1U}));  // a block for each row
}

/// The same of experts, whose first product is given the choices as well.
TEST_F(LayerLaunches, WhatLiesBetweenProductsOfExpertsIsQuantizedBehindTheFirst) {
  MoeProblem rows = problem();
  rows.intermediate = rows.down = Format::fp8_row;
  Tensor down = tensor_on_gpu(0x800, Format::fp8_row, {1, 16, 16});
  down.describe_scales(OperandRole::weights);
  down.scales.data = on_gpu(0xD00);
  const MoeLayer layer = plan(Device::cuda(0), rows, gate_up(), GroupedWeights{.b1 = down});
  driver_record() = {};
  layer.run({}, tensors(4), workspace_);
  ASSERT_EQ(driver_record().launches.size(), 5U);
  for (const RecordedLaunch& launch : driver_record().launches) {
    EXPECT_TRUE(launch.dependent);
  }
  EXPECT_EQ(driver_record().launches[2].grid, (std::array{8U, 1U, 1U}));  // a block for each row
}

}  // namespace
}  // namespace thresher
