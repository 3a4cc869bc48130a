#include "formats/safetensors.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/scratch_folder.hpp"
#include "thresher/error.hpp"

namespace thresher::formats {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

template <typename Call>
std::string failure(ErrorCode code, Call call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return "";
}

void put(const std::filesystem::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

/// Makes writes beyond `bytes` of a file fail, as a full disk does, while it lives.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : old_handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &old_limit_);
    const rlimit limit{bytes, old_limit_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &old_limit_);
    std::signal(SIGXFSZ, old_handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  void (*old_handler_)(int);
  rlimit old_limit_{};
};

TEST(Safetensors, WhatIsWrittenIsRead) {
  const ScratchFolder folder;
  const std::string narrow = "abc";
  const std::string wide = "12345678abcdefgh";
  const std::vector<TensorToWrite> tensors{{"narrow", Dtype::u8, {3, 1}, bytes_of(narrow)},
                                           {"wide", Dtype::f64, {2}, bytes_of(wide)},
                                           {"none", Dtype::f16, {0, 5}, {}}};
  write_safetensors(folder / "x.safetensors", tensors, {{"by", "test"}});
  EXPECT_EQ(folder.entries(), 1);

  const SafetensorsFile file(folder / "x.safetensors");
  EXPECT_EQ(file.header().metadata, (Metadata{{"by", "test"}}));
  ASSERT_NE(file.find("narrow"), nullptr);
  EXPECT_EQ(file.find("narrow")->shape, (std::vector<std::int64_t>{3, 1}));
  EXPECT_EQ(text_of(file.read(*file.find("narrow"))), narrow);
  EXPECT_EQ(text_of(file.read(*file.find("wide"))), wide);
  EXPECT_EQ(file.find("wide")->begin % 8, 0U);
  EXPECT_TRUE(file.read(*file.find("none")).empty());
  EXPECT_EQ(file.find("other"), nullptr);
  std::vector<std::byte> part(4);
  file.read(*file.find("wide"), 6, part);
  EXPECT_EQ(text_of(part), "78ab");
}

TEST(Safetensors, TheFileHasTheUsualPermissionsAndReplacesAnOldOne) {
  const ScratchFolder folder;
  put(folder / "x", "old");
  const mode_t mask = umask(022);
  write_safetensors(folder / "x", {});
  umask(mask);
  struct stat status{};
  ASSERT_EQ(stat((folder / "x").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0644U);
  EXPECT_TRUE(SafetensorsFile(folder / "x").header().tensors.empty());
}

TEST(Safetensors, ALinkIsFollowed) {
  const ScratchFolder folder;
  put(folder / "real", "old");
  std::filesystem::create_symlink(folder / "real", folder / "link");
  write_safetensors(folder / "link", {});
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_TRUE(SafetensorsFile(folder / "real").header().tensors.empty());
}

TEST(Safetensors, AFullDiskLeavesTheOldFileAndNothingElse) {
  const ScratchFolder folder;
  put(folder / "x", "old");
  const std::string big(100'000, 'x');
  const std::vector<TensorToWrite> tensors{{"big", Dtype::u8, {100'000}, bytes_of(big)}};
  std::string sentence;
  {
    const FileSizeLimit limit(10'000);
    sentence = failure(ErrorCode::io, [&] { write_safetensors(folder / "x", tensors); });
  }
  EXPECT_NE(sentence.find("cannot write " + (folder / "x").string()), std::string::npos) << sentence;
  EXPECT_EQ(folder.entries(), 1);
  EXPECT_EQ(std::filesystem::file_size(folder / "x"), 3U);
}

TEST(Safetensors, WithoutACommitNothingAppears) {
  const ScratchFolder folder;
  {
    SafetensorsWriter writer(folder / "x", {{"t", Dtype::u8, {4}, 0, 0}});
    writer.write("t", 0, bytes_of("ab"));
    EXPECT_NE(failure(ErrorCode::internal, [&] { writer.commit(); }).find("2 bytes"), std::string::npos);
    EXPECT_NE(failure(ErrorCode::internal, [&] { writer.write("t", 2, bytes_of("abc")); }), "");
    EXPECT_NE(failure(ErrorCode::internal, [&] { writer.write("u", 0, bytes_of("a")); }), "");
  }
  EXPECT_EQ(folder.entries(), 0);
}

TEST(Safetensors, PlacesThatCannotBeWrittenAreNamed) {
  const ScratchFolder folder;
  const auto missing = folder / "no/such/folder/x";
  EXPECT_NE(failure(ErrorCode::io, [&] { write_safetensors(missing, {}); }).find("No such file or directory"),
            std::string::npos);
  std::filesystem::create_directory(folder / "folder");
  EXPECT_NE(failure(ErrorCode::io, [&] { write_safetensors(folder / "folder", {}); }).find("not a regular file"),
            std::string::npos);
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_NE(failure(ErrorCode::io, [&] { write_safetensors(folder / "pipe", {}); }).find("not a regular file"),
            std::string::npos);
  EXPECT_EQ(folder.entries(), 2);
}

TEST(Safetensors, TensorsThatCannotBeWrittenAreNamed) {
  const ScratchFolder folder;
  const std::string data = "abc";
  const std::vector<TensorToWrite> wrong{{"t", Dtype::f16, {2}, bytes_of(data)}};
  EXPECT_NE(
      failure(ErrorCode::invalid_argument, [&] { write_safetensors(folder / "x", wrong); }).find("'t' has 3 bytes"),
      std::string::npos);
  const std::vector<TensorToWrite> twice{{"t", Dtype::u8, {3}, bytes_of(data)}, {"t", Dtype::u8, {3}, bytes_of(data)}};
  EXPECT_NE(failure(ErrorCode::invalid_argument, [&] { write_safetensors(folder / "x", twice); }).find("same name"),
            std::string::npos);
  const std::vector<TensorToWrite> negative{{"t", Dtype::u8, {-3}, bytes_of(data)}};
  EXPECT_NE(failure(ErrorCode::invalid_argument, [&] { write_safetensors(folder / "x", negative); }).find("negative"),
            std::string::npos);
  EXPECT_EQ(folder.entries(), 0);
}

TEST(Safetensors, FilesThatCannotBeReadAreNamed) {
  const ScratchFolder folder;
  const auto refused = [&](const std::filesystem::path& path, ErrorCode code) {
    const std::string sentence = failure(code, [&] { (void)SafetensorsFile(path); });
    EXPECT_NE(sentence.find(path.string()), std::string::npos) << sentence;
    return sentence;
  };
  EXPECT_NE(refused(folder / "missing", ErrorCode::io).find("No such file"), std::string::npos);
  std::filesystem::create_directory(folder / "folder");
  EXPECT_NE(refused(folder / "folder", ErrorCode::io).find("not a regular file"), std::string::npos);
  EXPECT_NE(refused("/dev/zero", ErrorCode::io).find("not a regular file"), std::string::npos);
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_NE(refused(folder / "pipe", ErrorCode::io).find("not a regular file"), std::string::npos);
  put(folder / "empty", "");
  EXPECT_NE(refused(folder / "empty", ErrorCode::invalid_argument).find("has 0 bytes"), std::string::npos);
  put(folder / "short", "abc");
  EXPECT_NE(refused(folder / "short", ErrorCode::invalid_argument).find("has 3 bytes"), std::string::npos);
  put(folder / "lying", std::string("\x10\0\0\0\0\0\0\0{}", 10));
  EXPECT_NE(refused(folder / "lying", ErrorCode::invalid_argument).find("only 2 follow"), std::string::npos);
}

TEST(Safetensors, EveryTruncationIsRefused) {
  const ScratchFolder folder;
  const std::string data = "0123456789";
  write_safetensors(folder / "x", std::vector<TensorToWrite>{{"t", Dtype::u8, {10}, bytes_of(data)}});
  std::ifstream stream(folder / "x", std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(stream), {}};
  for (std::size_t size = 0; size < whole.size(); ++size) {
    put(folder / "y", whole.substr(0, size));
    EXPECT_NE(failure(ErrorCode::invalid_argument, [&] { (void)SafetensorsFile(folder / "y"); }), "") << size;
  }
}

TEST(Safetensors, AFileThatShrinksWhileItIsReadIsAnError) {
  const ScratchFolder folder;
  const std::string data = "0123456789";
  write_safetensors(folder / "x", std::vector<TensorToWrite>{{"t", Dtype::u8, {10}, bytes_of(data)}});
  const SafetensorsFile file(folder / "x");
  std::filesystem::resize_file(folder / "x", std::filesystem::file_size(folder / "x") - 1);
  EXPECT_NE(failure(ErrorCode::io, [&] { (void)file.read(*file.find("t")); }).find("became shorter"),
            std::string::npos);
}

}  // namespace
}  // namespace thresher::formats
