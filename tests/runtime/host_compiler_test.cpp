// Code compiled for this CPU at run time: called, kept, refused with its first complaint, and absent without a
// compiler.
#include "runtime/host_compiler.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "support/scratch_folder.hpp"
#include "thresher/error.hpp"

namespace thresher::runtime {
namespace {

HostProgram answering(const std::string& answer) {
  return {.title = "the answer",
          .text = "#include \"told.hpp\"\nextern \"C\" int answer() { return told + " + answer + "; }\n",
          .headers = {{"told.hpp", "inline constexpr int told = 40;\n"}},
          .symbol = "answer"};
}

int call(void* function) { return reinterpret_cast<int (*)()>(function)(); }

std::size_t entries(const std::filesystem::path& folder) {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator()));
}

class HostCompilerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const HostCompiler compiler = find_host_compiler(); !compiler.problem.empty()) {
      GTEST_SKIP() << compiler.problem;
    }
  }
  ScratchFolder cache_;
};

TEST_F(HostCompilerTest, CompilesOnceAndKeepsTheResult) {
  EXPECT_EQ(call(load_host_program(answering("2"), cache_.path())), 42);
  EXPECT_EQ(entries(cache_.path()), 1U);
  EXPECT_EQ(call(load_host_program(answering("2"), cache_.path())), 42);
  EXPECT_EQ(entries(cache_.path()), 1U);
  EXPECT_EQ(call(load_host_program(answering("3"), cache_.path())), 43);
  EXPECT_EQ(entries(cache_.path()), 2U);
}

TEST_F(HostCompilerTest, WorksWithoutACache) { EXPECT_EQ(call(load_host_program(answering("4"), {})), 44); }

TEST_F(HostCompilerTest, ChangedHeaderIsAnotherProgram) {
  HostProgram program = answering("1");
  static_cast<void>(load_host_program(program, cache_.path()));
  program.headers = {{"told.hpp", "inline constexpr int told = 50;\n"}};
  EXPECT_EQ(call(load_host_program(program, cache_.path())), 51);
}

TEST_F(HostCompilerTest, DamagedEntryIsCompiledAnew) {
  static_cast<void>(load_host_program(answering("5"), cache_.path()));
  const ScratchFolder damaged;  // a file that is loaded already would not be read again
  for (const auto& entry : std::filesystem::directory_iterator(cache_.path())) {
    std::ofstream(damaged.path() / entry.path().filename()) << "not a shared object";
  }
  EXPECT_EQ(call(load_host_program(answering("5"), damaged.path())), 45);
}

// Whose beginning is a shared object still: the loader would map pages that the file does not have.
TEST_F(HostCompilerTest, TruncatedEntryIsCompiledAnew) {
  static_cast<void>(load_host_program(answering("6"), cache_.path()));
  const ScratchFolder damaged;
  for (const auto& entry : std::filesystem::directory_iterator(cache_.path())) {
    std::filesystem::copy(entry.path(), damaged.path());
    std::filesystem::resize_file(damaged.path() / entry.path().filename(), entry.file_size() / 2);
  }
  EXPECT_EQ(call(load_host_program(answering("6"), damaged.path())), 46);
  EXPECT_EQ(entries(damaged.path()), 1U);
}

TEST_F(HostCompilerTest, RefusalNamesTheFirstComplaint) {
  try {
    static_cast<void>(load_host_program(answering("unknown_word"), cache_.path()));
    FAIL() << "compiled";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::compile);
    EXPECT_NE(std::string(error.what()).find("unknown_word"), std::string::npos) << error.what();
  }
  EXPECT_EQ(entries(cache_.path()), 0U);
}

TEST_F(HostCompilerTest, AFileThatCannotBeWrittenIsNamedWithItsReason) {
  const std::string name(300, 'x');
  HostProgram program = answering("7");
  program.headers.push_back({name, ""});
  try {
    static_cast<void>(load_host_program(program, cache_.path()));
    ADD_FAILURE() << "written";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::io);
    EXPECT_TRUE(std::string(error.what()).ends_with("xx cannot be written: File name too long")) << error.what();
  }
}

TEST_F(HostCompilerTest, MissingCompilerIsSaidInOneSentence) {
  const char* const before = std::getenv("CXX");
  const std::string kept = before == nullptr ? "" : before;
  setenv("CXX", "/no/such/compiler", 1);
  try {
    static_cast<void>(load_host_program(answering("6"), cache_.path()));
    ADD_FAILURE() << "compiled";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_NE(std::string(error.what()).find("/no/such/compiler"), std::string::npos) << error.what();
  }
  before == nullptr ? unsetenv("CXX") : setenv("CXX", kept.c_str(), 1);
}

}  // namespace
}  // namespace thresher::runtime
