#include <gtest/gtest.h>

#include "runtime/nvrtc.hpp"

namespace thresher::runtime {
namespace {

constexpr std::string_view two_kernels = R"(ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z5firstPf' for 'sm_90a'
ptxas info    : Function properties for _Z5firstPf
    24 bytes stack frame, 16 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 168 registers, used 3 barriers, 24 bytes cumulative stack size, 49152 bytes smem
ptxas info    : Compiling entry function '_Z6secondPf' for 'sm_90a'
ptxas info    : Function properties for _Z6secondPf
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 0 barriers
)";

TEST(ResourceLog, IsReadForEachKernel) {
  const std::vector<NamedReport> reports = parse_resource_log(two_kernels);
  ASSERT_EQ(reports.size(), 2U);
  EXPECT_EQ(reports[0].lowered_name, "_Z5firstPf");
  EXPECT_EQ(reports[0].resources, (ResourceReport{168, 24, 16, 8, 49152, 3}));
  EXPECT_EQ(reports[1].lowered_name, "_Z6secondPf");
  EXPECT_EQ(reports[1].resources, (ResourceReport{10, 0, 0, 0, 0, 0}));
}

TEST(ResourceLog, OfNothingIsEmpty) { EXPECT_TRUE(parse_resource_log("").empty()); }

TEST(ResourceLog, HasNoTimesOnceTheyAreTakenOut) {
  EXPECT_EQ(without_times(two_kernels), two_kernels);
  EXPECT_EQ(without_times("ptxas info    : Used 10 registers\nptxas info    : Compile time = 80.387 ms\nptxas info    "
                          ": Used 2 barriers"),
            "ptxas info    : Used 10 registers\nptxas info    : Used 2 barriers");
  EXPECT_EQ(without_times("ptxas info    : Compile time = 80.387 ms"), "");
  EXPECT_EQ(without_times(""), "");
}

TEST(MissingBuiltins, AreTheFileThatCouldNotBeOpened) {
  EXPECT_EQ(missing_builtins("nvrtc: error: failed to open libnvrtc-builtins.so.13.0.\n  Make sure that "
                             "libnvrtc-builtins.so.13.0 is installed "
                             "correctly."),
            "libnvrtc-builtins.so.13.0");
  EXPECT_EQ(missing_builtins("scale.cu(12): error: libnvrtc-builtins is not a type"), "");
  EXPECT_EQ(missing_builtins(""), "");
}

TEST(PerformanceFailure, IsTheLineThatTellsOfOne) {
  EXPECT_EQ(performance_failure(two_kernels), "");
  EXPECT_EQ(performance_failure("ptxas info: a\nptxas info : (C7510) Potential Performance Loss: wgmma.mma_async "
                                "instructions are serialized\nptxas info: b"),
            "ptxas info : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized");
  EXPECT_EQ(performance_failure("warpgroup.wait is injected in around line 12"),
            "warpgroup.wait is injected in around line 12");
}

}  // namespace
}  // namespace thresher::runtime
