#include "core/device_spec.hpp"

#include <gtest/gtest.h>

#include <string>

#include "thresher/error.hpp"

namespace thresher {
namespace {

TEST(DeviceSpec, EveryEntryIsCompleteAndSaysWhereItIsFrom) {
  for (const DeviceSpec& spec : device_specs()) {
    SCOPED_TRACE(spec.name);
    EXPECT_FALSE(spec.source.empty());
    EXPECT_EQ(parse_arch(name(spec.arch)), spec.arch);  // all_archs lists it
    EXPECT_GE(spec.max_clock_ghz, spec.burst_clock_ghz);
    EXPECT_GE(spec.burst_clock_ghz, spec.sustained_clock_ghz);
    EXPECT_GT(spec.sustained_clock_ghz, 1.0);
    EXPECT_EQ(spec.shared_bytes_per_block, 232448);
    EXPECT_EQ(spec.registers_per_multiprocessor, 65536);
    EXPECT_EQ(spec.ops_per_clock_fp8, 2 * spec.ops_per_clock_16bit);
    EXPECT_EQ(spec.tensor_memory_columns, spec.matrix_unit == MatrixUnit::tcgen05 ? 512 : 0);
    EXPECT_EQ(spec.ops_per_clock_nvfp4 > 0, spec.matrix_unit == MatrixUnit::tcgen05);
  }
}

// Each constant of a card that nobody here has measured is an interval with a source.
TEST(DeviceSpec, ConstantsOfTensorCoresAreIntervalsThatSayWhereTheyAreFrom) {
  for (const DeviceSpec& spec : device_specs()) {
    for (const TensorUnitField& field : tensor_unit_fields) {
      SCOPED_TRACE(std::string(spec.name) + " " + std::string(field.name));
      const Constant& constant = spec.tensor.*field.member;
      EXPECT_EQ(constant.value > 0, spec.matrix_unit == MatrixUnit::tcgen05);
      EXPECT_LE(constant.low, constant.value);
      EXPECT_LE(constant.value, constant.high);
      EXPECT_EQ(constant.source.empty(), spec.matrix_unit != MatrixUnit::tcgen05);
      EXPECT_FALSE(name(constant.trust).empty());
    }
    if (spec.matrix_unit == MatrixUnit::tcgen05) {
      EXPECT_EQ(spec.tensor.clock_ghz.value, spec.burst_clock_ghz);
      EXPECT_EQ(spec.tensor.clock_ghz.high, spec.max_clock_ghz);
      EXPECT_EQ(spec.tensor.launch_us.value, spec.launch_us);
      EXPECT_EQ(spec.tensor.nvfp4_operations_per_clock.high, spec.ops_per_clock_nvfp4);
    }
  }
}

TEST(DeviceSpec, RatesGiveTheAdvertisedPeaks) {
  const auto tflops = [](std::string_view device, MatrixType type) {
    const DeviceSpec& spec = device_spec(device);
    return spec.multiprocessors * spec.ops_per_clock(type) * spec.max_clock_ghz * 1e-3;
  };
  EXPECT_NEAR(tflops("H200", MatrixType::bits16), 1070, 5);
  EXPECT_NEAR(tflops("H200", MatrixType::fp8), 2141, 10);
  EXPECT_NEAR(tflops("B200", MatrixType::nvfp4), 9000, 600);
  EXPECT_NEAR(tflops("GB300", MatrixType::nvfp4), 15000, 300);
}

TEST(DeviceSpec, IsFoundByTheSystemsNameToo) {
  EXPECT_EQ(device_spec("NVIDIA H200").name, "H200");
  EXPECT_EQ(device_spec("NVIDIA H100 80GB HBM3").name, "H100");
  EXPECT_EQ(device_spec("NVIDIA GB300").name, "GB300");
  EXPECT_EQ(find_device_spec("NVIDIA A100"), nullptr);
  try {
    (void)device_spec("A100");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "device \"A100\" is not in the planner's table: use one of H100, H200, B200, GB300");
  }
}

TEST(DeviceSpec, IsFoundInSmallLettersToo) {
  EXPECT_EQ(device_spec("b200").name, "B200");
  EXPECT_EQ(device_spec("gb300").name, "GB300");
  EXPECT_EQ(find_device_spec("b20"), nullptr);
}

// A family's code runs on each card of it, a card's own code there alone.
TEST(Arch, CodeRunsWhereItIsFor) {
  for (const Arch arch : all_archs) {
    EXPECT_TRUE(runs_on(arch, arch)) << name(arch);
    EXPECT_EQ(runs_on(Arch::sm_100f, arch), arch == Arch::sm_100a || arch == Arch::sm_100f || arch == Arch::sm_103a);
  }
  EXPECT_FALSE(runs_on(Arch::sm_100a, Arch::sm_103a));
  EXPECT_FALSE(runs_on(Arch::sm_103a, Arch::sm_100a));
  EXPECT_FALSE(runs_on(Arch::sm_100a, Arch::sm_100f));
  EXPECT_FALSE(runs_on(Arch::sm_90a, Arch::sm_100a));
}

TEST(Arch, StandsForACardOfTheTable) {
  EXPECT_EQ(device_spec_of_arch("sm_90a").name, "H200");  // the one that was measured
  EXPECT_EQ(device_spec_of_arch("sm_100a").name, "B200");
  EXPECT_EQ(device_spec_of_arch("sm_100f").name, "B200");
  EXPECT_EQ(device_spec_of_arch("sm_103a").name, "GB300");
  for (const char* arch : {"sm_99z", "cpu", "", "sm_100", "SM_100F"}) {
    try {
      (void)device_spec_of_arch(arch);
      FAIL() << arch;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_EQ(std::string(error.what()), "no device of the planner's table has the architecture \"" +
                                               std::string(arch) + "\": use one of sm_90a, sm_100a, sm_100f, sm_103a");
    }
  }
}

TEST(DeviceSpec, LargeClustersLeaveMultiprocessorsIdle) {
  const DeviceSpec& h200 = device_spec("H200");
  EXPECT_EQ(h200.resident_blocks(1, 1), 132);
  EXPECT_EQ(h200.resident_blocks(2, 1), 132);
  EXPECT_EQ(h200.resident_blocks(4, 1), 120);
  EXPECT_EQ(h200.resident_blocks(8, 1), 120);
}

}  // namespace
}  // namespace thresher
