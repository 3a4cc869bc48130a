#include "ops/nvfp4_choice.hpp"

#include <gtest/gtest.h>

#include "thresher/error.hpp"

namespace thresher::ops {
namespace {

TEST(Nvfp4Choice, KnobsThatNameNumericsAloneGetTheMeasuredChoice) {
  const DualGemmProblem problem{
      .m = 256, .n = 4096, .k = 7168, .a = Format::fp16, .b = Format::nvfp4, .out = Format::fp16};
  EXPECT_EQ(choose_packed(problem, "fast", 132), choose_packed(problem, "", 132, Numerics::fast));
  EXPECT_EQ(choose_packed(problem, "exact", 132, Numerics::fast), choose_packed(problem, "", 132));
  EXPECT_THROW((void)choose_packed(problem, "fast 100x128x128", 132), Error);
}

}  // namespace
}  // namespace thresher::ops
