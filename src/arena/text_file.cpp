#include "arena/text_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

/// Devices and pipes are written to directly; a file behind a link is replaced, not the link.
struct Target {
  explicit Target(const std::filesystem::path& path) : file(path) {
    std::error_code error;
    const std::filesystem::file_status status = std::filesystem::status(path, error);
    is_stream = std::filesystem::exists(status) && std::filesystem::is_other(status);
    if (!is_stream && std::filesystem::is_symlink(path, error)) {
      file = std::filesystem::weakly_canonical(path, error);
    }
  }
  std::filesystem::path file;
  bool is_stream = false;
};

std::error_code write_whole(const std::filesystem::path& path, std::string_view text) {
  errno = 0;
  std::ofstream stream(path, std::ios::binary | std::ios::trunc);
  stream.write(text.data(), static_cast<std::streamsize>(text.size()));
  stream.close();
  return stream ? std::error_code() : std::error_code(errno == 0 ? EIO : errno, std::generic_category());
}

[[noreturn]] void fail(const std::filesystem::path& path, std::string_view what, const std::error_code& error) {
  throw Error(ErrorCode::io, fmt::format("{} {} cannot be written: {}", what, path.string(), error.message()));
}

}  // namespace

void write_text(const std::filesystem::path& path, std::string_view text, std::string_view what) {
  const Target target(path);
  const std::filesystem::path draft =
      target.is_stream ? target.file
                       : std::filesystem::path(fmt::format("{}.{}.tmp", target.file.string(), ::getpid()));
  std::error_code error = write_whole(draft, text);
  if (!error && !target.is_stream) {
    std::filesystem::rename(draft, target.file, error);
  }
  if (error) {
    if (!target.is_stream) {
      std::error_code ignored;
      std::filesystem::remove(draft, ignored);
    }
    fail(path, what, error);
  }
}

void check_writable(const std::filesystem::path& path, std::string_view what) {
  const Target target(path);
  if (target.is_stream) {
    return;
  }
  if (std::filesystem::is_directory(target.file)) {
    fail(path, what, std::make_error_code(std::errc::is_a_directory));
  }
  const std::filesystem::path probe = fmt::format("{}.{}.tmp", target.file.string(), ::getpid());
  const std::error_code error = write_whole(probe, "");
  std::error_code ignored;
  std::filesystem::remove(probe, ignored);
  if (error) {
    fail(path, what, error);
  }
}

}  // namespace thresher::arena
