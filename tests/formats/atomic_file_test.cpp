#include "formats/atomic_file.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>

#include "support/scratch_folder.hpp"

namespace thresher::formats {
namespace {

const std::string text = "text";

std::string content(const std::filesystem::path& path) {
  std::ifstream stream(path);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// Whether files of the folder may lie there without a name.
bool has_nameless(const ScratchFolder& folder) {
  const AtomicFile file(folder / "probe");
  return folder.entries() == 0;
}

TEST(AtomicFile, WhatIsHalfWrittenCanBeRemovedAtOnce) {
  const ScratchFolder folder;
  AtomicFile one(folder / "one");
  AtomicFile other(folder / "other");
  other.write_at(0, std::as_bytes(std::span(text)));
  remove_temporary_files();
  EXPECT_EQ(folder.entries(), 0);
}

TEST(AtomicFile, WhatIsCommittedStays) {
  const ScratchFolder folder;
  for (int i = 0; i < 200; ++i) {  // more files than are remembered at a time
    AtomicFile file(folder / "file");
    i % 2 == 0 ? file.commit() : void();
  }
  remove_temporary_files();
  EXPECT_EQ(folder.entries(), 1);
  const AtomicFile last(folder / "last");
  remove_temporary_files();
  EXPECT_EQ(folder.entries(), 1);
}

TEST(AtomicFile, ReplacesWhatIsThere) {
  const ScratchFolder folder;
  for (const std::string& wanted : {std::string("first"), std::string("second, longer"), std::string("3")}) {
    AtomicFile file(folder / "file");
    file.write_at(0, std::as_bytes(std::span(wanted)));
    file.commit();
    EXPECT_EQ(content(folder / "file"), wanted);
    EXPECT_EQ(folder.entries(), 1);
  }
}

/// No destructor runs and no handler.
TEST(AtomicFile, AKilledProcessLeavesNothing) {
  const ScratchFolder folder;
  if (!has_nameless(folder)) {
    GTEST_SKIP() << "this file system has no files without a name";
  }
  const pid_t child = fork();
  if (child == 0) {
    AtomicFile file(folder / "file");
    file.write_at(0, std::as_bytes(std::span(text)));
    kill(getpid(), SIGKILL);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(folder.entries(), 0);
}

}  // namespace
}  // namespace thresher::formats
