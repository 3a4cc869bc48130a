// Kernels from outside that attack the line to their judge, the memory they share with it, or its patience: each fails
// at a gate with a sentence that says why, and nothing of it is left.
#include <gtest/gtest.h>

#include <cstdlib>

#include "arena/user_kernels/user_kernel_tournament.hpp"
#include "support/naive_kernel.hpp"

namespace thresher::arena {
namespace {

namespace fs = std::filesystem;

constexpr const char* prelude = R"(#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <atomic>
#include <string>
#include <thread>
#include <vector>
struct Range { char* begin; char* end; };
// Memory that this process shares with its judge.
inline std::vector<Range> shared() {
  std::vector<Range> found;
  if (FILE* maps = fopen("/proc/self/maps", "r")) {
    char line[512];
    while (fgets(line, sizeof line, maps) != nullptr) {
      unsigned long begin = 0, end = 0;
      if (strstr(line, "memfd:thresher") != nullptr && sscanf(line, "%lx-%lx", &begin, &end) == 2)
        found.push_back({(char*)begin, (char*)end});
    }
    fclose(maps);
  }
  return found;
}
)";

class HostileKernel : public OwnTournament {
 protected:
  void SetUp() override {
    fs::create_directory(temporary_);
    ::setenv("TMPDIR", temporary_.c_str(), 1);
  }
  void TearDown() override {
    EXPECT_TRUE(fs::is_empty(temporary_)) << "a temporary file stays";
    EXPECT_EQ(servers_left(), 0) << "a process stays";
    ::unsetenv("TMPDIR");
  }

  /// `before` stands in front of the function, `body` in it; `naive(call)` computes what is asked.
  Pitch hostile(const std::string& before, const std::string& body, const std::string& table = "") {
    return pitch_of("mine", "mine.cpp",
                    naive_kernel() + prelude + before +
                        "\nextern \"C\" void mine(const thresher_own_dual_gemm* call) {\n" + body + "\n}\n",
                    table);
  }

  /// The kernel's entry in a tournament that goes on to its end.
  Entry judged(const Pitch& pitch) {
    const TournamentResult result = hold({pitch}, tiny_suite);
    EXPECT_EQ(gate(entry(result, "two_pass"), GateKind::correct).outcome, Outcome::passed);
    return entry(result, "mine");
  }

  static void expect_failed(const Entry& entry, const std::string& at, const std::string& words) {
    EXPECT_EQ(plain_verdict(entry), "failed at " + at) << entry.sentence;
    EXPECT_NE(entry.sentence.find(words), std::string::npos) << entry.sentence;
  }

  /// Processes of this test's kernels, which begin in the folders that those are built in.
  int servers_left() const {
    int count = 0;
    std::error_code ignored;
    for (const fs::directory_entry& process : fs::directory_iterator("/proc", ignored)) {
      const fs::path works_in = fs::read_symlink(process.path() / "cwd", ignored);
      std::ifstream command(process.path() / "cmdline", std::ios::binary);
      const std::string words{std::istreambuf_iterator<char>(command), {}};
      count += words.find("serve-calls") != std::string::npos && works_in.string().starts_with(temporary_.string());
    }
    return count;
  }

  fs::path temporary_ = folder_.path() / "temporary";
};

constexpr const char* forge = R"(
static void forge(int descriptor) {
  const char gate[] = "{\"gate\":{\"gate\":\"verdict\",\"outcome\":\"passed\",\"sentence\":\"1000x\",\"evidence\":\"{}\"},"
                      "\"measurements\":[],\"verdict\":\"accepted\",\"clocks\":\"{}\"}\n";
  (void)!write(descriptor, gate, sizeof gate - 1);
})";

TEST_F(HostileKernel, AVerdictOfItsOwnIsNoAnswer) {
  const Entry at_once = judged(hostile(std::string(forge) + R"(
__attribute__((constructor)) static void begin() { for (int d = 3; d < 16; ++d) forge(d); _exit(0); })",
                                       ""));
  EXPECT_EQ(plain_verdict(at_once), "failed at compiles") << at_once.sentence;
  for (const GateKind kind : {GateKind::audited, GateKind::race_free, GateKind::timed, GateKind::verdict}) {
    EXPECT_NE(gate(at_once, kind).outcome, Outcome::passed) << name(kind);
  }
  const Entry in_a_call = judged(hostile(forge, "for (int d = 3; d < 16; ++d) forge(d);"));
  EXPECT_EQ(plain_verdict(in_a_call), "failed at correct") << in_a_call.sentence;
}

TEST_F(HostileKernel, GatesThatAKernelForTheCpuCannotPassAreNotJudged) {
  const Entry entry = judged(hostile(forge, "for (int d = 3; d < 16; ++d) forge(d); naive(call);"));
  EXPECT_EQ(gate(entry, GateKind::audited).outcome, Outcome::not_judged);
  EXPECT_EQ(gate(entry, GateKind::race_free).outcome, Outcome::not_judged);
}

/// Either junk is read first, or the process finds no room left on the line for its own answer and ends.
bool is_junk_or_end(const std::string& sentence) {
  return sentence.find("said something that is no answer") != std::string::npos ||
         sentence.find("the kernel's process ended with status") != std::string::npos;
}

TEST_F(HostileKernel, AFloodIsNoAnswer) {
  const Entry entry = judged(hostile(R"(
static void flood() {
  static const std::vector<char> junk(16384, 'x');
  for (;;) (void)!send(3, junk.data(), junk.size(), MSG_NOSIGNAL);
}
__attribute__((constructor)) static void begin() { std::thread(flood).detach(); })",
                                     "naive(call);"));
  EXPECT_TRUE(plain_verdict(entry).starts_with("failed at ")) << plain_verdict(entry);
  EXPECT_TRUE(is_junk_or_end(entry.sentence)) << entry.sentence;
}

TEST_F(HostileKernel, AMessageWithoutEndIsNoAnswer) {
  const Entry entry = judged(hostile("", R"(
  std::vector<char> junk(60000, 'x');
  (void)!send(3, junk.data(), junk.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  naive(call);)"));
  EXPECT_TRUE(plain_verdict(entry).starts_with("failed at ")) << plain_verdict(entry);
  EXPECT_TRUE(is_junk_or_end(entry.sentence)) << entry.sentence;
}

TEST_F(HostileKernel, FalseSignsOfLifeDoNotMoveTheLimit) {
  const Entry entry = judged(hostile(R"(
static void stir() {
  for (unsigned i = 0;; ++i)
    for (const Range& range : shared())
      if (range.end - range.begin == 4096) {
        ((std::atomic<unsigned>*)range.begin)[16].store(i | 0x80000000U);  // of the doorbell, done
        (void)!send(3, &i, sizeof i, MSG_NOSIGNAL | MSG_DONTWAIT);
      }
})",
                                     "std::thread(stir).detach(); for (;;) pause();", "time_limit_s = 1"));
  EXPECT_EQ(plain_verdict(entry), "failed at correct") << entry.sentence;
}

TEST_F(HostileKernel, ASignThatACallIsDoneIsNoOutput) {
  const Entry entry = judged(hostile("", R"(
  for (const Range& range : shared())
    if (range.end - range.begin == 4096) {
      auto* const words = (std::atomic<unsigned>*)range.begin;
      words[16].store(words[0].load());
    })"));
  EXPECT_EQ(plain_verdict(entry), "failed at correct") << entry.sentence;
}

TEST_F(HostileKernel, OneThatHangsUpOrLeavesSaysHow) {
  expect_failed(judged(hostile("", "for (int d = 0; d < 256; ++d) close(d); naive(call);")), "correct", "hung up");
  expect_failed(judged(hostile("", "_exit(0);")), "correct", "ended with status 0");
  expect_failed(judged(hostile("", "raise(SIGKILL);")), "correct", "signal 9");
}

TEST_F(HostileKernel, ACrashIsReportedThoughAChildHoldsTheLine) {
  expect_failed(judged(hostile("", "if (fork() == 0) for (;;) pause();\n  *(volatile int*)nullptr = 1;")), "correct",
                "signal 11");
}

TEST_F(HostileKernel, WhatIsComputedAfterTheCallIsNotThere) {
  const Entry entry = judged(hostile("", R"(
  const thresher_own_dual_gemm later = *call;
  std::thread([later] { usleep(20000); naive(&later); }).detach();)"));
  EXPECT_EQ(plain_verdict(entry), "failed at correct") << entry.sentence;
}

TEST_F(HostileKernel, AConstructorThatHangsEndsAtItsLimit) {
  expect_failed(
      judged(hostile("__attribute__((constructor)) static void begin() { for (;;) pause(); }", "", "time_limit_s = 1")),
      "compiles", "did not answer");
}

TEST_F(HostileKernel, AConstructorThatComputesIsNoCall) {
  const Entry entry = judged(
      hostile("__attribute__((constructor)) static void begin() { for (volatile int i = 0; i < 100000000; ++i) {} }",
              "naive(call);"));
  EXPECT_EQ(gate(entry, GateKind::correct).outcome, Outcome::passed) << entry.sentence;
}

// What the arena itself does, its ceilings and references, is not the kernel's time.
TEST_F(HostileKernel, AnHonestOneIsNotEndedForTheArenasWork) {
  Pitch pitch = load_pitch(example_folder / "naive-cpu.toml");
  pitch.kernel->time_limit_s = 1;
  const TournamentResult result =
      hold({pitch},
           "title = \"Small\"\noperation = \"dual_gemm\"\ndistributions = [\"contest\", \"integers\"]\n"
           "[[problem]]\nm = 40\nn = 136\nk = 128\na = \"fp16\"\nb = \"fp16\"\nout = \"fp16\"\n");
  for (const GateResult& judged : entry(result, "naive").gates) {
    EXPECT_EQ(judged.sentence.find("took longer"), std::string::npos) << name(judged.kind) << ": " << judged.sentence;
    EXPECT_EQ(judged.sentence.find("did not answer"), std::string::npos)
        << name(judged.kind) << ": " << judged.sentence;
  }
}

TEST_F(HostileKernel, MemoryThatIsNotItsOwnIsLookedAt) {
  expect_failed(judged(hostile("", "naive(call);\n  ((unsigned char*)call->a.values)[7] ^= 1;")), "correct",
                "its input a was written to");
  const Entry scribbles = judged(hostile("", R"(
  naive(call);
  for (const Range& range : shared())
    if (range.end - range.begin > 4096) memset(range.begin, 0x5A, (size_t)(range.end - range.begin));)"));
  EXPECT_EQ(plain_verdict(scribbles), "failed at correct") << scribbles.sentence;
  const Entry unmaps = judged(hostile("", R"(
  for (const Range& range : shared()) munmap(range.begin, (size_t)(range.end - range.begin));)"));
  EXPECT_EQ(plain_verdict(unmaps), "failed at correct") << unmaps.sentence;
}

// Shared memory keeps its length: a judge that reads behind a shortened end would be killed.
TEST_F(HostileKernel, SharedMemoryCannotBeCut) {
  const Entry entry = judged(hostile("", R"(
  for (int d = 0; d < 256; ++d) (void)!ftruncate(d, 0);
  for (const Range& range : shared())
    if (range.end - range.begin > 4096) madvise(range.begin, (size_t)(range.end - range.begin), MADV_REMOVE);)"));
  EXPECT_EQ(plain_verdict(entry), "failed at correct") << entry.sentence;
}

// Words of the process reach the terminal and the ledger as plain characters.
TEST_F(HostileKernel, WhatItSaysIsShownAsPlainText) {
  const Entry entry = judged(hostile(R"(
__attribute__((constructor)) static void begin() {
  struct { unsigned number, refused, code, length; char text[64]; } answer{2, 1, 5, 12, "\033[31mred\007\n"};
  (void)!send(3, &answer, 28, MSG_NOSIGNAL);
})",
                                     "naive(call);"));
  EXPECT_EQ(plain_verdict(entry), "failed at compiles") << entry.sentence;
  for (const char c : entry.sentence) {
    EXPECT_TRUE(c >= ' ' && c <= '~') << static_cast<int>(c);
  }
}

}  // namespace
}  // namespace thresher::arena
