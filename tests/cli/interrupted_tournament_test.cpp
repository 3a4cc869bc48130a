// Tournaments that are killed, and tournaments that share a ledger.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "cli/tournament_folder.hpp"

namespace thresher::testing {
namespace {

using nlohmann::json;

class InterruptedTournament : public TournamentFolder {
 protected:
  /// Starts a tournament; returns its process.
  pid_t start(const std::string& ledger, const std::string& seconds) const {
    const pid_t child = ::fork();
    if (child == 0) {
      if (::chdir(folder().c_str()) != 0 || std::freopen("child.txt", "w", stderr) == nullptr ||
          std::freopen("/dev/null", "w", stdout) == nullptr) {
        ::_exit(99);
      }
      ::execl(THRESHER_BINARY, THRESHER_BINARY, "tournament", "tiny.toml", "--ledger", ledger.c_str(), "--seconds",
              seconds.c_str(), "--device", "cpu", static_cast<char*>(nullptr));
      ::_exit(99);
    }
    return child;
  }

  static int status_of(pid_t child) {
    int status = -1;
    ::waitpid(child, &status, 0);
    return status;
  }

  /// Kills a tournament after its first contestant was recorded; false when it was through before the kill came.
  bool kill_after_first(const std::string& ledger) const {
    const pid_t child = start(ledger, "3");
    std::size_t recorded = 0;
    while (recorded == 0 && ::waitpid(child, nullptr, WNOHANG) == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      const Outcome outcome = run("ledger export --ledger " + ledger);
      const json runs = outcome.status == 0 ? json::parse(outcome.out) : json::array();
      recorded = runs.empty() ? 0 : runs[0]["entries"].size();
    }
    ::kill(child, SIGKILL);
    (void)status_of(child);
    return recorded == 1 && exported(ledger)[0]["ended"] == "";
  }
};

TEST_F(InterruptedTournament, KilledInTheMiddleItLosesOnlyTheContestantInProgress) {
  std::string ledger;
  bool was_killed = false;
  for (int attempt = 0; attempt < 5 && !was_killed; ++attempt) {  // a stalled machine may let it end first
    ledger = "ledger" + std::to_string(attempt) + ".sqlite";
    was_killed = kill_after_first(ledger);
  }
  ASSERT_TRUE(was_killed) << slurp(folder() / "child.txt");
  const json before = exported(ledger);
  const std::string again = "tournament tiny.toml --device cpu --resume --ledger " + ledger;
  EXPECT_EQ(run(again + " --seconds 0.3").status, 2) << "another time budget is another tournament";
  const Outcome resumed = run(again + " --seconds 3");
  ASSERT_EQ(resumed.status, 0) << resumed.err;
  EXPECT_NE(resumed.err.find("going on with run 1"), std::string::npos) << resumed.err;
  const json after = exported(ledger);
  ASSERT_EQ(after.size(), 1U);
  EXPECT_NE(after[0]["ended"], "");
  ASSERT_EQ(after[0]["entries"].size(), 2U);
  EXPECT_EQ(after[0]["entries"][0], before[0]["entries"][0]) << "what was there stays as it was";
}

TEST_F(InterruptedTournament, TwoAtOnceOnOneLedgerLoseNothing) {
  const pid_t one = start("ledger.sqlite", "0.3");
  const pid_t other = start("ledger.sqlite", "0.3");
  EXPECT_EQ(status_of(one), 0);
  EXPECT_EQ(status_of(other), 0);
  const json runs = exported();
  ASSERT_EQ(runs.size(), 2U);
  for (const json& run : runs) {
    EXPECT_EQ(run["entries"].size(), 2U);
    EXPECT_NE(run["ended"], "");
  }
}

}  // namespace
}  // namespace thresher::testing
