#include "formats/atomic_file.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string_view>
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

/// Blocks this thread's signals while it lives.
class AllSignalsHeld {
 public:
  AllSignalsHeld() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~AllSignalsHeld() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  AllSignalsHeld(const AllSignalsHeld&) = delete;
  AllSignalsHeld& operator=(const AllSignalsHeld&) = delete;

 private:
  sigset_t before_{};
};

/// The names of the temporary files that exist. Each string lives until its entry is null again. A file that finds no
/// free entry is still written, but stays when a signal ends the process.
std::array<std::atomic<const char*>, 64> temporary_names{};
static_assert(std::atomic<const char*>::is_always_lock_free, "a signal handler reads them");

/// The file's own name, shortened to leave room for an ending.
std::string beside(const std::filesystem::path& file) {
  constexpr std::size_t longest = 240;
  return (file.parent_path() / file.filename().string().substr(0, longest)).string();
}

/// The system's name of an open file.
std::string open_file(int descriptor) { return fmt::format("/proc/self/fd/{}", descriptor); }

/// ".xxxxxx", as mkostemp makes it.
std::string random_ending() {
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  std::random_device random;
  std::string ending = ".";
  for (int i = 0; i < 6; ++i) {
    ending += letters[random() % letters.size()];
  }
  return ending;
}

std::string folder_of(const std::filesystem::path& file) {
  return file.has_parent_path() ? file.parent_path().string() : ".";
}

}  // namespace

void remove_temporary_files() noexcept {
  for (const std::atomic<const char*>& name : temporary_names) {
    if (const char* path = name.load(); path != nullptr) {
      unlink(path);
    }
  }
}

void AtomicFile::remember() noexcept {
  for (std::atomic<const char*>& name : temporary_names) {
    const char* free_place = nullptr;
    if (name.compare_exchange_strong(free_place, temporary_.c_str())) {
      return;
    }
  }
}

void AtomicFile::forget() noexcept {
  for (std::atomic<const char*>& name : temporary_names) {
    const char* own = temporary_.c_str();
    if (name.compare_exchange_strong(own, nullptr)) {
      return;
    }
  }
}

AtomicFile::AtomicFile(const std::filesystem::path& target) : target_(followed(target)) {
  struct stat status{};
  if (stat(target_.c_str(), &status) != 0) {
    if (errno == ENAMETOOLONG) {  // which a file without a name would find out only at the end
      fail(errno);
    }
  } else if (!S_ISREG(status.st_mode)) {
    throw Error(ErrorCode::io, fmt::format("cannot write {}: it exists and is not a regular file", target_.string()));
  }
  make_nameless();
  if (descriptor_ < 0) {
    make_temporary();
  }
}

void AtomicFile::make_nameless() noexcept {
  descriptor_ = open(folder_of(target_).c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (descriptor_ >= 0 && access(open_file(descriptor_).c_str(), F_OK) != 0) {  // no name could be given to it later
    close(std::exchange(descriptor_, -1));
  }
}

void AtomicFile::make_temporary() {
  temporary_ = beside(target_) + ".XXXXXX";
  const AllSignalsHeld held;  // so that no signal ends the process between creating the file and recording it
  descriptor_ = mkostemp(temporary_.data(), O_CLOEXEC);
  if (descriptor_ < 0) {
    const int error_number = errno;
    temporary_.clear();
    fail(error_number);
  }
  remember();
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) {
    close(descriptor_);
  }
  if (!temporary_.empty()) {
    unlink(temporary_.c_str());
    forget();
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

void AtomicFile::give_name() {
  const auto name = [this](const std::string& path) {
    return linkat(AT_FDCWD, open_file(descriptor_).c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0;
  };
  if (name(target_.string())) {
    return;
  }
  for (int attempt = 0; errno == EEXIST && attempt < 100; ++attempt) {
    if (const std::string path = beside(target_) + random_ending(); name(path)) {
      temporary_ = path;
      remember();
      return;
    }
  }
  fail(errno);
}

void AtomicFile::commit() {
  if (fchmod(descriptor_, default_mode()) != 0 || fsync(descriptor_) != 0) {
    fail(errno);
  }
  const AllSignalsHeld held;  // so that no signal ends the process while the file has a temporary name
  if (temporary_.empty()) {
    give_name();
  }
  if (close(std::exchange(descriptor_, -1)) != 0) {
    fail(errno);
  }
  if (!temporary_.empty()) {
    if (std::rename(temporary_.c_str(), target_.c_str()) != 0) {
      fail(errno);
    }
    forget();
    temporary_.clear();
  }
  // The new name itself must survive a crash. A file system that cannot sync folders offers nothing better.
  const int folder = open(folder_of(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    fsync(folder);
    close(folder);
  }
}

}  // namespace thresher::formats
