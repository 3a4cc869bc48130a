#include "arena/text_file.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "arena/expect_error.hpp"
#include "core/input_file.hpp"
#include "support/scratch_folder.hpp"

namespace thresher::arena {
namespace {

namespace fs = std::filesystem;

class TextFile : public ::testing::Test {
 protected:
  ScratchFolder folder_;
};

TEST_F(TextFile, IsReplacedWholeAndLeavesNoDraft) {
  write_text(folder_ / "a", "one", "the file");
  write_text(folder_ / "a", "two", "the file");
  check_writable(folder_ / "a", "the file");
  EXPECT_EQ(read_input_file(folder_ / "a").bytes, "two");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), {}), 1);
}

TEST_F(TextFile, ALinkStaysALink) {
  write_text(folder_ / "a", "one", "the file");
  fs::create_symlink("a", folder_ / "link");
  write_text(folder_ / "link", "two", "the file");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(read_input_file(folder_ / "a").bytes, "two");
}

TEST_F(TextFile, DevicesAreWrittenToAndAFullOneIsNamed) {
  write_text("/dev/null", "one", "the file");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_EQ(error_of([] { write_text("/dev/full", std::string(100'000, 'x'), "the file"); }),
            "the file /dev/full cannot be written: No space left on device");
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST_F(TextFile, PlacesThatCannotBeWrittenAreNamed) {
  const std::string missing = (folder_ / "none" / "a").string();
  for (const auto& write : {+[](const std::string& path) { write_text(path, "x", "the file"); },
                            +[](const std::string& path) { check_writable(path, "the file"); }}) {
    EXPECT_EQ(error_of([&] { write(missing); }),
              "the file " + missing + " cannot be written: No such file or directory");
    EXPECT_EQ(error_of([&] { write(folder_.path().string()); }),
              "the file " + folder_.path().string() + " cannot be written: Is a directory");
  }
  EXPECT_TRUE(fs::is_empty(folder_.path()));
}

}  // namespace
}  // namespace thresher::arena
