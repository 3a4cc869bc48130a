// What a planned call launches, as the driver sees it; there need be no GPU.
#include "ops/cuda_call.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "ops/recording_driver.hpp"
#include "runtime/driver.hpp"
#include "runtime/nvrtc.hpp"
#include "strategies/pause_program.hpp"
#include "thresher/error.hpp"

namespace thresher::ops {
namespace {

using strategies::CallTensors;
using strategies::KernelLaunch;
using strategies::LaunchArguments;
using testing::driver_record;
using testing::recorded_blocks_per_multiprocessor;
using testing::recorded_multiprocessors;
using testing::recorded_resident_clusters;

struct Parameter {
  machine::TensorMap weights{};
  machine::TensorMap tokens{};
  std::uint64_t value = 0;
};

machine::TensorMapDescription row_of_numbers(const void* data) {
  return {.address = reinterpret_cast<std::uintptr_t>(data), .rank = 1, .extent = {64}, .box = {64}};
}

/// A launch that any kernel can stand for: the driver executes none.
KernelLaunch launch_of(strategies::Bind bind) {
  return {.title = "a kernel",
          .program = strategies::pause_program(),
          .expression = strategies::pause_kernel(),
          .block = {128, 1, 1},
          .bind = std::move(bind)};
}

strategies::Bind blocks(unsigned count, std::uint64_t value = 0) {
  return [=](const CallTensors&, LaunchArguments& arguments) {
    arguments.set(Parameter{.value = value});
    arguments.grid = {count, 1, 1};
    return true;
  };
}

Parameter parameter(const testing::RecordedLaunch& launch) {
  Parameter read;
  std::memcpy(&read, launch.parameter.data(), sizeof read);
  return read;
}

strategies::PlannedCall call_of(std::vector<KernelLaunch> launches) {
  strategies::PlannedCall call{.strategy = "toy"};
  for (KernelLaunch& launch : launches) {
    call.steps.emplace_back(std::move(launch));
  }
  return call;
}

class CudaCallTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!runtime::nvrtc_status().problem.empty()) {
      GTEST_SKIP() << runtime::nvrtc_status().problem;
    }
    driver_record() = {};
  }
};

TEST_F(CudaCallTest, LaunchesTheStepsInOrderAsPlanned) {
  KernelLaunch first = launch_of(blocks(3, 11));
  first.shared_bytes = 100'000;
  KernelLaunch second = launch_of(blocks(8, 22));
  second.cluster = {4, 1, 1};
  second.dependent = true;
  const CudaCall call(call_of({first, second}), 0, {});
  EXPECT_EQ(driver_record().max_dynamic_shared_bytes, 100'000);
  EXPECT_TRUE(driver_record().launches.empty());
  call.run({}, {});
  ASSERT_EQ(driver_record().launches.size(), 2U);
  const testing::RecordedLaunch& prepares = driver_record().launches[0];
  EXPECT_EQ(prepares.grid, (std::array{3U, 1U, 1U}));
  EXPECT_EQ(prepares.block, (std::array{128U, 1U, 1U}));
  EXPECT_EQ(prepares.shared_bytes, 100'000U);
  EXPECT_FALSE(prepares.dependent);
  EXPECT_EQ(parameter(prepares).value, 11U);
  const testing::RecordedLaunch& multiplies = driver_record().launches[1];
  EXPECT_EQ(multiplies.cluster, 4U);
  EXPECT_TRUE(multiplies.dependent);
  EXPECT_EQ(parameter(multiplies).value, 22U);
}

TEST_F(CudaCallTest, RunsOnlyTheStepsAskedFor) {
  const CudaCall call(call_of({launch_of(blocks(1, 1)), launch_of(blocks(1, 2)), launch_of(blocks(0, 3))}), 0, {});
  call.run({}, {}, 1);
  ASSERT_EQ(driver_record().launches.size(), 1U);  // one without blocks is not launched
  EXPECT_EQ(parameter(driver_record().launches[0]).value, 2U);
  call.run({}, {}, 0, 1);
  ASSERT_EQ(driver_record().launches.size(), 2U);
  EXPECT_EQ(parameter(driver_record().launches[1]).value, 1U);
}

/// Attention over pages keeps a table of all sequences in shared memory, so that plans for many and for few sequences
/// ask for different sizes of one kernel: the plan for few must not take away what the plan for many has asked for.
TEST_F(CudaCallTest, APlanWithLessSharedMemoryLeavesThatOfAnother) {
  const auto planned = [](std::uint32_t shared_bytes) {
    KernelLaunch launch = launch_of(blocks(132));
    launch.shared_bytes = shared_bytes;
    return CudaCall(call_of({launch}), 0, {});
  };
  const CudaCall many = planned(214'944);
  const CudaCall few = planned(213'936);
  few.run({}, {});
  many.run({}, {});
  ASSERT_EQ(driver_record().launches.size(), 2U);
  EXPECT_EQ(driver_record().launches[1].shared_bytes, 214'944U);
}

TEST_F(CudaCallTest, APersistentGridIsCappedAtWhatIsResident) {
  KernelLaunch blocks_alone = launch_of(blocks(100'000));
  blocks_alone.persistent = true;
  KernelLaunch clusters = blocks_alone;
  clusters.cluster = {2, 1, 1};
  KernelLaunch few = launch_of(blocks(5));
  few.persistent = true;
  CudaCall(call_of({blocks_alone, clusters, few}), 0, {}).run({}, {});
  ASSERT_EQ(driver_record().launches.size(), 3U);
  EXPECT_EQ(driver_record().launches[0].grid[0],
            static_cast<unsigned>(recorded_multiprocessors * recorded_blocks_per_multiprocessor));
  EXPECT_EQ(driver_record().launches[1].grid[0], static_cast<unsigned>(recorded_resident_clusters * 2));
  EXPECT_EQ(driver_record().launches[2].grid[0], 5U);
}

TEST_F(CudaCallTest, EncodesTheMapsOfWeightsOnceAndThoseOfTokensWhereTheyLieAnew) {
  const auto bind = [](const CallTensors& call, LaunchArguments& arguments) {
    arguments.set(Parameter{});
    arguments.add_map(offsetof(Parameter, tokens), row_of_numbers(call.tensors[1].data));
    return true;
  };
  KernelLaunch launch = launch_of(bind);
  int described = 0;
  launch.bind_weights = [&](const CallTensors& call, LaunchArguments& arguments) {
    ++described;
    arguments.add_map(offsetof(Parameter, weights), row_of_numbers(call.tensors[0].data));
  };
  alignas(16) std::array<float, 64> weights{};
  std::array tensors{Tensor::contiguous(weights.data(), Format::fp32, {1, 64}),
                     Tensor::contiguous(stand_in_address(), Format::fp32, {1, 64})};
  const CudaCall call(call_of({launch}), 0, {tensors, nullptr});
  EXPECT_EQ(driver_record().encoded_maps, 1);
  alignas(16) std::array<float, 64> tokens{};
  alignas(16) std::array<float, 64> other_tokens{};
  std::thread([&] {  // which knows no maps yet
    tensors[1].data = other_tokens.data();
    call.run({}, {tensors, nullptr});
    EXPECT_EQ(driver_record().encoded_maps, 2);
    tensors[1].data = tokens.data();
    call.run({}, {tensors, nullptr});
    call.run({}, {tensors, nullptr});
    EXPECT_EQ(driver_record().encoded_maps, 3);
  })
      .join();
  EXPECT_EQ(described, 1);
  ASSERT_EQ(driver_record().launches.size(), 3U);
  const Parameter got = parameter(driver_record().launches[2]);
  EXPECT_EQ(got.weights.opaque[0], reinterpret_cast<std::uintptr_t>(weights.data()));
  EXPECT_EQ(got.tokens.opaque[0], reinterpret_cast<std::uintptr_t>(tokens.data()));
}

TEST_F(CudaCallTest, LaunchesTheAlternativeForTensorsThatALaunchRefuses) {
  KernelLaunch launch = launch_of([](const CallTensors& call, LaunchArguments& arguments) {
    arguments.set(Parameter{.value = 1});
    arguments.grid = {1, 1, 1};
    return call.workspace == stand_in_address();
  });
  launch.alternative = std::make_shared<const KernelLaunch>(launch_of(blocks(7, 2)));
  const CudaCall call(call_of({launch}), 0, {});
  call.run({}, {{}, stand_in_address()});
  call.run({}, {});
  ASSERT_EQ(driver_record().launches.size(), 2U);
  EXPECT_EQ(parameter(driver_record().launches[0]).value, 1U);
  EXPECT_EQ(parameter(driver_record().launches[1]).value, 2U);
  EXPECT_EQ(driver_record().launches[1].grid[0], 7U);
}

TEST_F(CudaCallTest, TheDriverTellsTheGpusMemoryFromWhatItDoesNotKnow) {
  int on_host = 0;
  EXPECT_EQ(runtime::pointer_device(reinterpret_cast<void*>(testing::recorded_page_bytes)),
            (DeviceId{DeviceKind::cuda, 0}));
  EXPECT_EQ(runtime::pointer_device(&on_host), (DeviceId{DeviceKind::cpu, 0}));
  EXPECT_EQ(runtime::pointer_device(nullptr), (DeviceId{DeviceKind::cpu, 0}));
}

TEST_F(CudaCallTest, RefusesAStepOfTheCpu) {
  strategies::PlannedCall call{.strategy = "toy"};
  call.steps.emplace_back(strategies::HostCall{"add on the CPU", [](const CallTensors&) {}});
  EXPECT_THROW(CudaCall(call, 0, {}), Error);
}

}  // namespace
}  // namespace thresher::ops
