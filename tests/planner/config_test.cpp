#include <gtest/gtest.h>

#include "planner/dual_gemm_config.hpp"
#include "planner/rank.hpp"
#include "thresher/error.hpp"

namespace thresher::planner {
namespace {

TEST(Config, EveryCandidateReadsBackFromItsOwnText) {
  for (const Format b : {Format::fp16, Format::nvfp4}) {
    const DualGemmProblem problem{.m = 256, .n = 4096, .k = 7168, .a = Format::fp16, .b = b, .out = Format::fp16};
    for (const DeviceSpec& device : device_specs()) {
      for (const DualGemmConfig& config : dual_gemm_candidates(problem, device)) {
        const DualGemmConfig read = parse_config(text(config));
        EXPECT_EQ(text(read), text(config));
        if (config.strategy != Strategy::two_pass) {
          EXPECT_EQ(read, config) << text(config);
        }
      }
    }
  }
}

TEST(Config, SwitchesAreRead) {
  const DualGemmConfig config =
      parse_config("pingpong fast 192x64x128 stages=5 tma tokens_as_rows same_tokens persistent dependent_launch");
  EXPECT_EQ(config.strategy, Strategy::pingpong);
  EXPECT_EQ(config.numerics, Numerics::fast);
  EXPECT_EQ(config.tile, (Tile{192, 64, 128}));
  EXPECT_EQ(config.stages, 5);
  EXPECT_EQ(config.epilogue, Epilogue::tma);
  EXPECT_EQ(config.mma_rows, MmaRows::tokens);
  EXPECT_EQ(config.raster, Raster::same_tokens);
  EXPECT_TRUE(config.persistent);
  EXPECT_TRUE(config.dependent_launch);
}

TEST(Config, UnknownWordsAreNamed) {
  for (const std::string_view bad :
       {"sideways", "stages=", "stages=0", "stages=x", "128x128", "128x-1x64", "turbo=3"}) {
    try {
      (void)parse_config(bad);
      FAIL() << bad;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_NE(std::string(error.what()).find(bad), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace thresher::planner
