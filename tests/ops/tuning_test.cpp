#include "ops/tuning.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace thresher::ops {
namespace {

DualGemmProblem tuned_problem(std::int64_t m) {
  return {.m = m, .n = 4096, .k = 7168, .a = Format::fp16, .b = Format::nvfp4, .out = Format::fp16};
}

TEST(Tuning, KeepsWhatItWasTold) {
  Tuning tuning;
  tuning.set("a GPU", tuned_problem(256), {"packed", "interleaved exact 128x128x128 stages=3", 41.5, 44});
  tuning.set("a GPU", tuned_problem(512), {"two_pass", "", 70, 75.25});
  const Tuning read = Tuning::parse(tuning.text());
  ASSERT_NE(read.find("a GPU", tuned_problem(256)), nullptr);
  EXPECT_EQ(read.find("a GPU", tuned_problem(256))->knobs, "interleaved exact 128x128x128 stages=3");
  EXPECT_EQ(read.find("a GPU", tuned_problem(512))->strategy, "two_pass");
  EXPECT_EQ(read.find("a GPU", tuned_problem(512))->default_us, 75.25);
  EXPECT_EQ(read.find("another", tuned_problem(256)), nullptr);
  DualGemmProblem other = tuned_problem(256);
  other.a = Format::bf16;
  EXPECT_EQ(read.find("a GPU", other), nullptr);
  other = tuned_problem(256);
  other.activation.kind = ActivationKind::gelu_tanh;
  EXPECT_EQ(read.find("a GPU", other), nullptr);
  tuning.forget("a GPU", tuned_problem(256));
  EXPECT_EQ(tuning.find("a GPU", tuned_problem(256)), nullptr);
}

TEST(Tuning, DamageTellsNothingAndHarmsNothing) {
  Tuning tuning;
  tuning.set("a GPU", tuned_problem(256), {"two_pass", "", 41.5, 44});
  const std::string line = tuning.text();
  const Tuning read =
      Tuning::parse("\n\t\t\t\t\t\nx\ty\nd\tp\ts\tk\tfast\t1\nd\tp\ts\tk\t1\t-1\n\xFF\n" + line + "cut off\t");
  EXPECT_NE(read.find("a GPU", tuned_problem(256)), nullptr);
  EXPECT_EQ(read.text(), line);
  EXPECT_EQ(read_tuning("/no/such/file").text(), "");
}

TEST(Tuning, WhoNamesAStrategyGetsIt) {
  EXPECT_FALSE(tuned_options(Device::cpu(), tuned_problem(256), {.strategy = "two_pass"}));
  EXPECT_FALSE(tuned_options(Device::cpu(), tuned_problem(256), {}));
}

TEST(TuningFile, FollowsTheEnvironment) {
  ::setenv("THRESHER_TUNING", "/somewhere/t.tsv", 1);
  EXPECT_EQ(tuning_file(), "/somewhere/t.tsv");
  ::unsetenv("THRESHER_TUNING");
  ::setenv("XDG_STATE_HOME", "/state", 1);
  EXPECT_EQ(tuning_file(), "/state/thresher/tuning.tsv");
  ::unsetenv("XDG_STATE_HOME");
}

}  // namespace
}  // namespace thresher::ops
