#include <gtest/gtest.h>

#include <string>

#include "runtime/driver.hpp"
#include "runtime/memory.hpp"
#include "thresher/error.hpp"

namespace thresher::runtime {
namespace {

TEST(BuildWithoutCuda, SaysSoWhateverIsAsked) {
  EXPECT_FALSE(driver_status().built_with_cuda);
  EXPECT_NE(driver_status().problem.find("no GPU support"), std::string::npos);
  EXPECT_THROW(device_properties(0), Error);
  EXPECT_THROW(ContextGuard(0), Error);
  EXPECT_EQ(DeviceBuffer().data(), nullptr);
  try {
    const DeviceBuffer buffer(0, 16);
    FAIL() << "memory of a GPU that is not supported";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_NE(std::string(error.what()).find("CUDA_HOME"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace thresher::runtime
