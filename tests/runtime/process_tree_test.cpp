// A program and all that it starts: ended together, frozen together, and gone with whoever started it.
#include "runtime/process_tree.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <thread>

#include "runtime/process.hpp"
#include "support/scratch_folder.hpp"
#include "thresher/error.hpp"

namespace thresher::runtime {
namespace {

namespace fs = std::filesystem;

constexpr double long_s = 600;  // nothing here takes that long

Command shell(const std::string& script, const fs::path& folder = {}) {
  Command command;
  command.words = {"/bin/sh", "-c", script};
  command.folder = folder;
  return command;
}

/// The number in a file that a script writes; waited for.
pid_t number_in(const fs::path& file) {
  pid_t number = 0;
  while (!(std::ifstream(file) >> number)) {
    std::this_thread::yield();
  }
  return number;
}

char state_of(pid_t process) {
  std::ifstream stat("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  std::getline(stat, text);  // nothing of a process that ended meanwhile
  return text.empty() ? 'X' : text.at(text.rfind(')') + 2);
}

bool is_gone(pid_t process) { return state_of(process) == 'X'; }

/// Writes the number of a process that sleeps on, in the place of `%`.
std::string sleeper(const std::string& how, const std::string& file) {
  return how + " sh -c 'echo $$ > " + file + ".part; mv " + file + ".part " + file + "; exec sleep 1000'";
}

void expect_no_children() {
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child or a zombie is left";
  EXPECT_EQ(errno, ECHILD);
}

TEST(ProcessTree, SaysHowTheProgramEnded) {
  EXPECT_EQ(ProcessTree(shell("exit 3")).wait(long_s)->sentence(), "ended with status 3");
  EXPECT_EQ(ProcessTree(shell("kill -SEGV $$")).wait(long_s)->sentence(),
            "was killed by signal 11 (Segmentation fault)");
  EXPECT_TRUE(ProcessTree(shell("true")).wait(long_s)->succeeded());
  expect_no_children();
}

TEST(ProcessTree, WhatTheProgramLeavesBehindEndsWithIt) {
  const ScratchFolder folder;
  const std::string script = sleeper("", "a") + " & " + sleeper("setsid", "b") + " & (" + sleeper("setsid", "c") +
                             " & ) ; while [ ! -e a -o ! -e b -o ! -e c ]; do :; done; kill -SEGV $$";
  ProcessTree tree(shell(script, folder.path()));
  const std::optional<Ending> ending = tree.wait(long_s);
  ASSERT_TRUE(ending);
  EXPECT_TRUE(WIFSIGNALED(ending->status) && WTERMSIG(ending->status) == SIGSEGV) << ending->sentence();
  for (const char* file : {"a", "b", "c"}) {
    EXPECT_TRUE(is_gone(number_in(folder / file))) << file;
  }
  expect_no_children();
}

TEST(ProcessTree, EndsWithAllDescendants) {
  const ScratchFolder folder;
  ProcessTree tree(
      shell("trap '' TERM INT HUP; " + sleeper("setsid", "b") + " & " + sleeper("", "a") + " & wait", folder.path()));
  const std::array processes{tree.pid(), number_in(folder / "a"), number_in(folder / "b")};
  EXPECT_FALSE(tree.wait(0));
  const Ending ending = tree.end();
  EXPECT_TRUE(WIFSIGNALED(ending.status) && WTERMSIG(ending.status) == SIGKILL) << ending.sentence();
  for (const pid_t process : processes) {
    EXPECT_TRUE(is_gone(process));
  }
  EXPECT_EQ(tree.end().status, ending.status);
  expect_no_children();
}

TEST(ProcessTree, EndsWhenItIsDestroyed) {
  const ScratchFolder folder;
  pid_t process = 0;
  {
    const ProcessTree tree(shell(sleeper("", "a"), folder.path()));
    process = number_in(folder / "a");
  }
  EXPECT_TRUE(is_gone(process));
  expect_no_children();
}

TEST(ProcessTree, EndsWhenWhoStartedItIsKilled) {
  const ScratchFolder folder;
  const pid_t starter = ::fork();
  if (starter == 0) {
    const ProcessTree tree(shell(sleeper("setsid", "a") + " & wait", folder.path()));
    (void)number_in(folder / "a");
    ::raise(SIGKILL);
  }
  ::waitpid(starter, nullptr, 0);
  const pid_t process = number_in(folder / "a");
  while (!is_gone(process)) {
    std::this_thread::yield();
  }
}

TEST(TemporaryFolder, IsRemovedHoweverItsProcessEnds) {
  for (const int how : {0, SIGKILL, SIGINT}) {
    const ScratchFolder folder;
    const pid_t owner = ::fork();
    if (owner == 0) {
      ::setenv("TMPDIR", folder.path().c_str(), 1);
      const TemporaryFolder temporary;
      std::ofstream(temporary.path() / "file") << "x";
      if (how == 0) {
        ::_exit(fs::exists(temporary.path() / "file") ? 0 : 1);
      }
      ::signal(how, SIG_DFL);
      ::raise(how);
    }
    int status = -1;
    ::waitpid(owner, &status, 0);
    EXPECT_EQ(how == 0 ? status : WTERMSIG(status), how);
    while (folder.entries() != 0) {
      std::this_thread::yield();
    }
  }
}

TEST(ProcessTree, FrozenNothingRuns) {
  const ScratchFolder folder;
  const std::string busy = "sh -c 'echo $$ > %.part; mv %.part %; while :; do :; done'";
  const auto in = [&](std::string text, const std::string& file) {
    for (std::size_t at = 0; (at = text.find('%')) != std::string::npos;) {
      text.replace(at, 1, file);
    }
    return text;
  };
  ProcessTree tree(shell(in(busy, "a") + " & setsid " + in(busy, "b") + " & while :; do :; done", folder.path()));
  const std::array processes{tree.pid(), number_in(folder / "a"), number_in(folder / "b")};
  for (int again = 0; again < 3; ++again) {
    ASSERT_TRUE(tree.freeze());
    for (const pid_t process : processes) {
      EXPECT_EQ(state_of(process), 'T');
    }
    tree.thaw();
    for (const pid_t process : processes) {
      while (state_of(process) == 'T') {
        std::this_thread::yield();
      }
    }
  }
  ASSERT_TRUE(tree.freeze());
  (void)tree.end();
  for (const pid_t process : processes) {
    EXPECT_TRUE(is_gone(process));
  }
}

TEST(ProcessTree, WhatHasEndedIsNotFrozen) {
  ProcessTree tree(shell("exit 4"));
  ASSERT_TRUE(tree.wait(long_s));
  EXPECT_FALSE(tree.freeze());
  EXPECT_EQ(WEXITSTATUS(tree.end().status), 4);
}

TEST(ProcessTree, HasASessionOfItsOwnAndNoDescriptorsButThoseItIsGiven) {
  const ScratchFolder folder;
  const int file = ::open((folder / "written").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  const int not_given = ::open("/dev/null", O_RDONLY);
  ASSERT_GE(not_given, 0);
  Command command = shell("exec >&7; ls /proc/$$/fd; cut -d' ' -f 1,5,6 /proc/$$/stat", folder.path());
  command.descriptors = {{file, 7}};
  ProcessTree tree(command);
  EXPECT_TRUE(tree.wait(long_s)->succeeded());
  ::close(file);
  ::close(not_given);
  const std::string own = std::to_string(tree.pid());
  std::ifstream stream(folder / "written");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(stream), {}),
            "0\n1\n2\n7\n" + own + " " + own + " " + own + "\n");
}

TEST(ProcessTree, WhatCannotBeStartedIsSaidInOneSentence) {
  try {
    const ProcessTree tree(Command{.words = {"/no/such/program"}});
    ADD_FAILURE() << "started";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::io);
    EXPECT_NE(std::string(error.what()).find("/no/such/program"), std::string::npos) << error.what();
  }
  EXPECT_THROW(ProcessTree(shell("true", "/no/such/folder")), Error);
  expect_no_children();
}

TEST(ProcessTree, AConfinedCommandWritesInItsFolderAlone) {
  const ScratchFolder own;
  const ScratchFolder others;
  Command command =
      shell("echo inside > file; echo outside > " + (others / "file").string() + "; /bin/echo done", own.path());
  command.confinement = Confinement{.writable = {own.path()}, .may_fork = true, .may_exec = true};
  const ProcessOutput output = run_process(command, {});
  EXPECT_TRUE(output.succeeded()) << output.text;
  EXPECT_NE(output.text.find("done\n"), std::string::npos) << output.text;
  EXPECT_TRUE(fs::exists(own / "file"));
  ASSERT_EQ(output.confined.protections.size(), PreparedConfinement::steps);
  for (const Protection& protection : output.confined.protections) {
    EXPECT_TRUE(protection.what != "files" || protection.in_force != fs::exists(others / "file"));
  }
  expect_no_children();
}

TEST(ProcessTree, ARunEndsAtItsLimits) {
  EXPECT_EQ(run_process(shell("echo said; sleep 1000"), {.time_s = 0.2}).text.substr(0, 4), "said");
  const ProcessOutput slow = run_process(shell("sleep 1000 & sleep 1000"), {.time_s = 0.1});
  EXPECT_NE(slow.stopped_because.find("longer"), std::string::npos);
  EXPECT_FALSE(slow.succeeded());
  const ProcessOutput quiet = run_process(shell("exec >&- 2>&-; sleep 1000"), {.time_s = 0.1});
  EXPECT_NE(quiet.stopped_because.find("longer"), std::string::npos);
  const ProcessOutput loud =
      run_process(shell("while :; do echo much; done"), {.time_s = long_s, .output_bytes = 1000});
  EXPECT_NE(loud.stopped_because.find("printed"), std::string::npos);
  EXPECT_EQ(loud.text.size(), 1000U);
  const ProcessOutput plain = run_process(shell("echo said; exit 5"), {});
  EXPECT_EQ(plain.text, "said\n");
  EXPECT_EQ(WEXITSTATUS(plain.status), 5);
  EXPECT_EQ(plain.stopped_because, "");
  expect_no_children();
}

}  // namespace
}  // namespace thresher::runtime
