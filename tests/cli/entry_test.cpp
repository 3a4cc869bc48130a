// The command as a function: what its exit status says of a failure.
#include "cli/entry.hpp"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>

#include "cli/cli.hpp"
#include "thresher/error.hpp"

namespace thresher::cli {
namespace {

/// The exit status for the failure, and what is said of it.
struct Told {
  int status;
  std::string sentence;
};

template <class Failure>
Told told(const Failure& thrown) {
  ::testing::internal::CaptureStderr();
  const int status = report_failure(std::make_exception_ptr(thrown));
  return {status, ::testing::internal::GetCapturedStderr()};
}

TEST(ExitStatus, WhatTheUserCanMendIsBadInput) {
  for (const ErrorCode code : {ErrorCode::invalid_argument, ErrorCode::unsupported, ErrorCode::io}) {
    const Told bad = told(Error(code, "suite x: there is none"));
    EXPECT_EQ(bad.status, bad_input);
    EXPECT_EQ(bad.sentence, "thresher: suite x: there is none\n");
  }
}

TEST(ExitStatus, WhatNoInputIsToBlameForIsAFailureOfItsOwn) {
  EXPECT_EQ(told(Error(ErrorCode::device, "the driver gave up")).status, failure);
  EXPECT_EQ(told(Error(ErrorCode::out_of_memory, "no room")).status, failure);
  EXPECT_EQ(told(std::bad_alloc()).status, failure);
}

TEST(ExitStatus, ADefectAsksForAReport) {
  for (const Told& defect : {told(Error(ErrorCode::internal, "a table is empty")), told(std::runtime_error("odd"))}) {
    EXPECT_EQ(defect.status, failure);
    EXPECT_NE(defect.sentence.find("please report it"), std::string::npos) << defect.sentence;
  }
}

TEST(Command, SaysWhatItDoesNotKnow) {
  const char* const arguments[] = {"thresher", "plan", "--fly"};
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(run(3, arguments), bad_input);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "thresher: not known here: --fly (see thresher plan --help)\n");
}

TEST(Command, NamesTheSubcommandsForAWordThatIsNone) {
  const char* const arguments[] = {"thresher", "tournamnet", "origin"};
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(run(3, arguments), bad_input);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(said.starts_with("thresher: there is no subcommand tournamnet: use one of plan, predict, judge, "))
      << said;
}

TEST(Command, NamesWhatAnOptionTakes) {
  const char* const arguments[] = {"thresher", "run", "dual-gemm", "--in", "x", "--out", "y", "--out-type", "fp8"};
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(run(9, arguments), bad_input);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "thresher: --out-type: fp8 is none of fp32, fp16, bf16, nvfp4, fp8_tensor, fp8_row, fp8_block (see "
            "thresher run dual-gemm --help)\n");
}

TEST(Command, EmulatesNoProblemThatItsOperationDoesNotTake) {
  const char* const arguments[] = {"thresher", "emulate", "attention", "--a", "nvfp4", "--knobs", "keys=64"};
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(run(7, arguments), bad_input);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("nvfp4 not in {fp16,bf16}"), std::string::npos) << said;
}

}  // namespace
}  // namespace thresher::cli
