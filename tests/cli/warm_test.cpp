#include <gtest/gtest.h>

#include "cli/command.hpp"
#include "runtime/nvrtc.hpp"

namespace thresher::testing {
namespace {

TEST(Warm, FillsTheCacheOnceForAnArchitectureThatIsNotBuiltIn) {
  if (!runtime::nvrtc_status().problem.empty()) {
    GTEST_SKIP() << runtime::nvrtc_status().problem;
  }
  const ScratchFolder folder;
  setenv("THRESHER_CACHE", (folder.path() / "cache").c_str(), 1);
  const Outcome first = run_thresher(folder.path(),
                                     "warm "
                                     "--arch sm_90");
  EXPECT_EQ(first.status, 0) << first.err;
  EXPECT_NE(first.out.find("two_pass for sm_90: compiled in"), std::string::npos) << first.out;
  const Outcome second = run_thresher(folder.path(),
                                      "warm "
                                      "--arch sm_90");
  EXPECT_NE(second.out.find("two_pass for sm_90: already in the cache"), std::string::npos) << second.out;
  const Outcome family = run_thresher(folder.path(), "warm --arch sm_100f");
  EXPECT_EQ(family.status, 0) << family.err;
  EXPECT_NE(family.out.find("two_pass for sm_100f: compiled in"), std::string::npos) << family.out;
  const Outcome unknown = run_thresher(folder.path(),
                                       "warm "
                                       "--arch sm_17");
  unsetenv("THRESHER_CACHE");
  EXPECT_EQ(unknown.status, 2);
  EXPECT_NE(unknown.err.find("does not know the architecture sm_17"), std::string::npos) << unknown.err;
}

}  // namespace
}  // namespace thresher::testing
