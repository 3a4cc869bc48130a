// Files from outside are read whole, within a limit, and never waited for.
#include "core/input_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "support/scratch_folder.hpp"

namespace thresher {
namespace {

class InputFileTest : public ::testing::Test {
 protected:
  ScratchFolder folder_;
};

TEST_F(InputFileTest, ARegularFileIsReadWhole) {
  const std::string text = "one\n" + std::string(100'000, 'x') + '\0';
  std::ofstream(folder_ / "a") << text;
  const InputFile file = read_input_file(folder_ / "a");
  EXPECT_EQ(file.bytes, text);
  EXPECT_EQ(file.obstacle, "");
  std::ofstream(folder_ / "empty");
  EXPECT_EQ(read_input_file(folder_ / "empty").bytes, "");
}

TEST_F(InputFileTest, TheLimitIsTheMostThatIsRead) {
  std::ofstream(folder_ / "a") << "12345678";
  EXPECT_EQ(read_input_file(folder_ / "a", 8).bytes, "12345678");
  const InputFile larger = read_input_file(folder_ / "a", 7);
  EXPECT_FALSE(larger.bytes);
  EXPECT_EQ(larger.obstacle, "the file cannot be read: it has more than the 7 bytes that such a file may have");
}

// A size of 0 is what files of /proc say of themselves.
TEST_F(InputFileTest, AFileThatIsLongerThanItSaysIsReadWhole) {
  const InputFile file = read_input_file("/proc/self/status");
  ASSERT_TRUE(file.bytes) << file.obstacle;
  EXPECT_NE(file.bytes->find("VmRSS"), std::string::npos);
}

TEST_F(InputFileTest, PipesDevicesAndFoldersAreRefusedAtOnce) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  for (const std::filesystem::path& path : {folder_ / "pipe", std::filesystem::path("/dev/zero"), folder_.path()}) {
    const InputFile file = read_input_file(path);
    EXPECT_FALSE(file.bytes) << path;
    EXPECT_EQ(file.obstacle, "the file cannot be read: it is not a regular file") << path;
  }
}

TEST_F(InputFileTest, AMissingFileSaysSo) {
  EXPECT_EQ(read_input_file(folder_ / "none").obstacle, "the file cannot be read: No such file or directory");
}

}  // namespace
}  // namespace thresher
