// Tournaments that are killed, and tournaments that share a ledger.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/tournament_folder.hpp"
#include "support/naive_kernel.hpp"

namespace thresher::testing {
namespace {

using nlohmann::json;

// A call does not return while the variable OMP_HELD is set, which kernels are told.
constexpr const char* waiting_kernel = R"(
#include <stdlib.h>
#include <unistd.h>

extern "C" void waiting(const thresher_own_dual_gemm* call) {
  while (getenv("OMP_HELD") != nullptr) {
    pause();
  }
  naive(call);
})";

constexpr const char* waiting_pitch = R"(title = "Waits to be interrupted"
[contestant]
operation = "dual_gemm"
strategy = "waiting"
[kernel]
source = "waiting.cpp"
entry = "waiting"
time_limit_s = 3600
[baseline]
strategy = "two_pass"
[claim]
speedup = 0.1
confidence = 0.5
reason = "one core"
)";

class InterruptedTournament : public TournamentFolder {
 protected:
  InterruptedTournament() { write("tiny.toml", untimed_suite()); }

  /// Starts a tournament; returns its process.
  pid_t start(std::vector<std::string> more = {}, bool is_held = false) const {
    std::vector<std::string> words{THRESHER_BINARY, "tournament", "tiny.toml", "--device",       "cpu", "--ledger",
                                   "ledger.sqlite", "--seconds",  "3",         "--call-seconds", "3600"};
    words.insert(words.end(), more.begin(), more.end());
    std::vector<char*> argv;
    for (std::string& word : words) {
      argv.push_back(word.data());
    }
    argv.push_back(nullptr);
    const pid_t child = ::fork();
    if (child == 0) {
      ::signal(SIGINT, SIG_DFL);  // whoever runs the tests in the background ignores it
      if (is_held) {
        ::setenv("OMP_HELD", "1", 1);
      }
      if (::chdir(folder().c_str()) == 0 && std::freopen("child.txt", "w", stderr) != nullptr &&
          std::freopen("/dev/null", "w", stdout) != nullptr) {
        ::execv(argv[0], argv.data());
      }
      ::_exit(99);
    }
    return child;
  }

  /// Whether the ledger comes to hold one contestant, within five minutes: a second one has begun then, or is about to.
  [[nodiscard]] bool first_contestant_is_through() const {
    for (int turn = 0; turn < 1500; ++turn) {
      const json runs = json::parse(run("ledger export --ledger ledger.sqlite").out, nullptr, false);
      if (runs.is_array() && !runs.empty() && runs[0]["entries"].size() == 1) {
        return true;
      }
      ::usleep(200'000);
    }
    return false;
  }

  static int status_of(pid_t child) {
    int status = -1;
    ::waitpid(child, &status, 0);
    return status;
  }
};

TEST_F(InterruptedTournament, InterruptedItSaysHowToGoOn) {
  write("waiting.cpp", naive_kernel() + waiting_kernel);
  write("waiting.toml", waiting_pitch);
  const pid_t child = start({"--pitch", "waiting.toml"}, true);
  const bool first_is_through = first_contestant_is_through();
  ::kill(child, SIGINT);
  const int status = status_of(child);
  ASSERT_TRUE(first_is_through) << slurp(folder() / "child.txt");
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT) << "as the shell expects it: " << status;
  const std::string said = slurp(folder() / "child.txt");
  const std::string last =
      "thresher: interrupted: every contestant that is through is in ledger ledger.sqlite; the same command with "
      "--resume goes on\n";
  EXPECT_TRUE(said.ends_with("\n" + last)) << said;
}

TEST_F(InterruptedTournament, KilledInTheMiddleItLosesOnlyTheContestantInProgress) {
  write("waiting.cpp", naive_kernel() + waiting_kernel);
  write("waiting.toml", waiting_pitch);
  const pid_t child = start({"--pitch", "waiting.toml"}, true);
  const bool first_is_through = first_contestant_is_through();
  ::kill(child, SIGKILL);
  (void)status_of(child);
  ASSERT_TRUE(first_is_through) << slurp(folder() / "child.txt");
  const json before = exported();
  ASSERT_EQ(before[0]["entries"].size(), 1U);
  EXPECT_EQ(before[0]["ended"], "");

  const std::string again =
      "tournament tiny.toml --pitch waiting.toml --device cpu --call-seconds 3600 --resume --ledger ledger.sqlite";
  EXPECT_EQ(run(again + " --seconds 0.3").status, 2) << "another time budget is another tournament";
  const Outcome resumed = run(again + " --seconds 3");
  ASSERT_TRUE(was_held(resumed)) << resumed.err;
  EXPECT_NE(resumed.err.find("going on with run 1"), std::string::npos) << resumed.err;
  const json after = exported();
  ASSERT_EQ(after.size(), 1U);
  EXPECT_NE(after[0]["ended"], "");
  ASSERT_EQ(after[0]["entries"].size(), 2U);
  EXPECT_EQ(after[0]["entries"][0], before[0]["entries"][0]) << "what was there stays as it was";
  EXPECT_EQ(after[0]["entries"][1]["contestant"], "dual_gemm/waiting");
}

TEST_F(InterruptedTournament, TwoAtOnceOnOneLedgerLoseNothing) {
  for (const pid_t child : {start(), start()}) {
    const int status = status_of(child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) <= 1) << status;
  }
  const json runs = exported();
  ASSERT_EQ(runs.size(), 2U);
  for (const json& run : runs) {
    EXPECT_EQ(run["entries"].size(), 2U);
    EXPECT_NE(run["ended"], "");
  }
}

}  // namespace
}  // namespace thresher::testing
