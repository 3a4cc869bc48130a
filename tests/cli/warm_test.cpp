#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <fstream>

#include "cli/command.hpp"
#include "runtime/nvrtc.hpp"

namespace thresher::testing {
namespace {

/// `words` with THRESHER_CACHE set to `cache`.
Outcome with_cache(const std::filesystem::path& folder, const std::string& cache, const std::string& words) {
  setenv("THRESHER_CACHE", cache.c_str(), 1);
  const Outcome outcome = run_thresher(folder, words);
  unsetenv("THRESHER_CACHE");
  return outcome;
}

/// While it lives, files that this process and those it starts write end where the disk would be full.
class LittleRoom {
 public:
  explicit LittleRoom(rlim_t bytes) : before_(signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &limit_);
    const rlimit less{bytes, limit_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &less);
  }
  LittleRoom(const LittleRoom&) = delete;
  LittleRoom& operator=(const LittleRoom&) = delete;
  ~LittleRoom() {
    setrlimit(RLIMIT_FSIZE, &limit_);
    (void)signal(SIGXFSZ, before_);
  }

 private:
  void (*before_)(int);
  rlimit limit_{};
};

class Warm : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!runtime::nvrtc_status().problem.empty()) {
      GTEST_SKIP() << runtime::nvrtc_status().problem;
    }
  }
  ScratchFolder folder_;
};

TEST_F(Warm, FillsTheCacheOnceForAnArchitectureThatIsNotBuiltIn) {
  const std::string cache = folder_ / "kept";
  const Outcome first = with_cache(folder_.path(), cache, "warm --arch sm_90");
  EXPECT_EQ(first.status, 0) << first.err;
  EXPECT_EQ(first.err, "");
  EXPECT_NE(first.out.find("two_pass for sm_90: compiled in"), std::string::npos) << first.out;
  const Outcome second = with_cache(folder_.path(), cache, "warm --arch sm_90");
  EXPECT_NE(second.out.find("two_pass for sm_90: already in the cache"), std::string::npos) << second.out;
  const std::string last = second.out.substr(second.out.rfind("cache: "));
  int kept = 0;
  int wanted = 0;
  ASSERT_EQ(std::sscanf(last.c_str() + ("cache: " + cache + ": ").size(), "%d of %d programs kept", &kept, &wanted), 2)
      << last;
  EXPECT_GT(wanted, 0);
  EXPECT_EQ(kept, wanted);
  const Outcome family = with_cache(folder_.path(), cache, "warm --arch sm_100f");
  EXPECT_EQ(family.status, 0) << family.err;
  EXPECT_NE(family.out.find("two_pass for sm_100f: compiled in"), std::string::npos) << family.out;
  const Outcome unknown = with_cache(folder_.path(), cache, "warm --arch sm_17");
  EXPECT_EQ(unknown.status, 2);
  EXPECT_NE(unknown.err.find("--arch: sm_17 is not supported: expected sm_90a, sm_100a, "), std::string::npos)
      << unknown.err;
}

/// The two numbers of "thresher: the cache … : K of W programs kept\n", which is all that is said.
void expect_not_kept(const Outcome& outcome, const std::string& reason, int max_kept) {
  EXPECT_EQ(outcome.status, 1);
  const std::string begin = "thresher: " + reason + ": ";
  ASSERT_TRUE(outcome.err.starts_with(begin)) << outcome.err;
  int kept = -1;
  int wanted = -1;
  ASSERT_EQ(std::sscanf(outcome.err.c_str() + begin.size(), "%d of %d programs kept", &kept, &wanted), 2)
      << outcome.err;
  EXPECT_TRUE(outcome.err.ends_with(" programs kept\n")) << outcome.err;
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1);
  EXPECT_LE(kept, max_kept);
  EXPECT_GT(wanted, kept);
}

TEST_F(Warm, ACacheThatIsNoFolderIsAFailure) {
  std::ofstream(folder_ / "file") << "";
  const std::string file = folder_ / "file";
  expect_not_kept(with_cache(folder_.path(), file, "warm --arch sm_90"),
                  "the cache " + file + " cannot be written: Not a directory", 0);
}

TEST_F(Warm, AFullDiskIsAFailureAndSaysHowMuchIsKept) {
  const std::string cache = folder_ / "kept";
  constexpr rlim_t room = 16 << 10;
  {
    const LittleRoom little(room);
    expect_not_kept(with_cache(folder_.path(), cache, "warm --arch sm_90"),
                    "the cache " + cache + " cannot be written: File too large", 30);
  }
  ASSERT_EQ(with_cache(folder_.path(), cache, "warm --arch sm_90").status, 0);
  const LittleRoom little(room);
  const Outcome complete = with_cache(folder_.path(), cache, "warm --arch sm_90");
  EXPECT_EQ(complete.status, 0) << "what is there already needs no room: " << complete.err;
}

}  // namespace
}  // namespace thresher::testing
