#include "formats/atomic_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "thresher/error.hpp"

namespace thresher::formats {
namespace {

mode_t default_mode() {
  const mode_t mask = umask(0);
  umask(mask);
  return 0666 & ~mask;
}

std::filesystem::path followed(const std::filesystem::path& target) {
  std::error_code ignored;
  const std::filesystem::path real = std::filesystem::weakly_canonical(target, ignored);
  return ignored ? target : real;
}

std::string folder_of(const std::filesystem::path& file) {
  return file.has_parent_path() ? file.parent_path().string() : ".";
}

}  // namespace

AtomicFile::AtomicFile(const std::filesystem::path& target) : target_(followed(target)) {
  struct stat status{};
  if (stat(target_.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    throw Error(ErrorCode::io, fmt::format("cannot write {}: it exists and is not a regular file", target_.string()));
  }
  temporary_ = target_.string() + ".XXXXXX";
  descriptor_ = mkostemp(temporary_.data(), O_CLOEXEC);
  if (descriptor_ < 0) {
    temporary_.clear();
    fail(errno);
  }
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) {
    close(descriptor_);
  }
  if (!temporary_.empty()) {
    unlink(temporary_.c_str());
  }
}

void AtomicFile::fail(int error_number) const {
  throw Error(ErrorCode::io,
              fmt::format("cannot write {}: {}", target_.string(), std::generic_category().message(error_number)));
}

void AtomicFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written <= 0) {
      fail(written == 0 ? EIO : errno);
    }
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
}

void AtomicFile::commit() {
  if (fchmod(descriptor_, default_mode()) != 0 || fsync(descriptor_) != 0) {
    fail(errno);
  }
  if (close(std::exchange(descriptor_, -1)) != 0) {
    fail(errno);
  }
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) {
    fail(errno);
  }
  temporary_.clear();
  // The new name itself must survive a crash; a file system that cannot sync folders has nothing more to offer.
  const int folder = open(folder_of(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    fsync(folder);
    close(folder);
  }
}

}  // namespace thresher::formats
