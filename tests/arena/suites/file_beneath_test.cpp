// What a pitch may name: regular files beneath its own folder, by no way that leads elsewhere.
#include "arena/pitches/file_beneath.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "support/scratch_folder.hpp"

namespace thresher::arena {
namespace {

namespace fs = std::filesystem;

class FileBeneath : public ::testing::Test {
 protected:
  FileBeneath() {
    fs::create_directories(folder_ / "pitch/deep/er");
    std::ofstream(folder_ / "secret.cpp") << "told to nobody";
    std::ofstream(pitch_ / "mine.cpp") << "mine";
    std::ofstream(pitch_ / "deep/er/mine.cpp") << "deeper";
  }

  std::string text_of(const std::string& path) const { return read_beneath(pitch_, path).bytes.value_or("none"); }

  void expect_refused(const std::string& path, const std::string& words) const {
    const InputFile file = read_beneath(pitch_, path);
    EXPECT_FALSE(file.bytes) << path;
    EXPECT_NE(file.obstacle.find(words), std::string::npos) << path << ": " << file.obstacle;
  }

  ScratchFolder folder_;
  fs::path pitch_ = folder_ / "pitch";
};

TEST_F(FileBeneath, WhatLiesThereIsRead) {
  EXPECT_EQ(text_of("mine.cpp"), "mine");
  EXPECT_EQ(text_of("./mine.cpp"), "mine");
  EXPECT_EQ(text_of("deep/er/mine.cpp"), "deeper");
  EXPECT_EQ(text_of("deep/./er//mine.cpp"), "deeper");
}

TEST_F(FileBeneath, TheWayToTheFolderMayBeALink) {
  fs::create_directory_symlink(pitch_, folder_ / "link");
  EXPECT_EQ(read_beneath(folder_ / "link", "mine.cpp").bytes.value_or(""), "mine");
}

TEST_F(FileBeneath, NoWayLeadsOut) {
  expect_refused("../secret.cpp", "leads out of the pitch's folder");
  expect_refused("deep/../mine.cpp", "leads out of the pitch's folder");
  expect_refused((folder_ / "secret.cpp").string(), "no path from the pitch's folder on");
  expect_refused((pitch_ / "mine.cpp").string(), "no path from the pitch's folder on");
  expect_refused(std::string("mine.cpp\0.py", 12), "NUL");
}

TEST_F(FileBeneath, LinksAreNotFollowedWhereverTheyPoint) {
  fs::create_symlink(folder_ / "secret.cpp", pitch_ / "elsewhere.cpp");
  fs::create_symlink("mine.cpp", pitch_ / "beside.cpp");
  fs::create_symlink("nowhere", pitch_ / "nowhere.cpp");
  fs::create_directory_symlink(folder_.path(), pitch_ / "up");
  fs::create_directory_symlink("deep", pitch_ / "down");
  fs::create_symlink("/dev/zero", pitch_ / "zero.cpp");
  expect_refused("elsewhere.cpp", "'elsewhere.cpp' is a link");
  expect_refused("beside.cpp", "'beside.cpp' is a link");
  expect_refused("nowhere.cpp", "'nowhere.cpp' is a link");
  expect_refused("zero.cpp", "'zero.cpp' is a link");
  expect_refused("up/secret.cpp", "'up' is a link");
  expect_refused("down/er/mine.cpp", "'down' is a link");
}

TEST_F(FileBeneath, OnlyRegularFilesOfSomeSizeAreRead) {
  ASSERT_EQ(::mkfifo((pitch_ / "pipe.cpp").c_str(), 0600), 0);
  std::ofstream(pitch_ / "large.cpp");
  fs::resize_file(pitch_ / "large.cpp", max_text_bytes + 1);
  expect_refused("pipe.cpp", "it is not a regular file");
  expect_refused("deep", "it is not a regular file");
  expect_refused("mine.cpp/", "it is not a regular file");
  expect_refused("mine.cpp/mine.cpp", "Not a directory");
  expect_refused("deep/", "it is not a regular file");
  expect_refused("", "it is not a regular file");
  expect_refused("no-such.cpp", "No such file");
  expect_refused("large.cpp", "it has more than the");
}

}  // namespace
}  // namespace thresher::arena
