#include "runtime/cache_folder.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <thread>

#include "core/fingerprint.hpp"
#include "core/printable.hpp"
#include "core/remark.hpp"

namespace thresher::runtime {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view unfinished_extension = ".part";
/// One file for the locks of all entries, one byte per entry, so that no file accumulates.
constexpr const char* lock_file = "locks";

/// Files of killed writers: no writer needs that long for one file.
void remove_old_unfinished(const fs::path& folder) {
  const auto oldest = fs::file_time_type::clock::now() - std::chrono::hours(1);
  std::error_code failure;
  for (fs::directory_iterator entry(folder, failure), end; !failure && entry != end; entry.increment(failure)) {
    std::error_code ignored;
    if (entry->path().extension() == unfinished_extension && entry->is_regular_file(ignored) &&
        entry->last_write_time(ignored) < oldest && !ignored) {
      fs::remove(entry->path(), ignored);
    }
  }
}

/// 0, or errno.
int write_new(const fs::path& file, std::string_view bytes) {
  const int descriptor = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0) {
    return errno;
  }
  int failure = 0;
  while (!bytes.empty() && failure == 0) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
    } else if (written == 0 || errno != EINTR) {
      failure = written == 0 ? EIO : errno;
    }
  }
  return ::close(descriptor) != 0 && failure == 0 ? errno : failure;
}

std::string unwritable(const fs::path& folder, const std::error_code& reason) {
  return "the cache " + folder.string() + " cannot be written: " + reason.message();
}

/// The byte for an entry.
off_t place_of(std::string_view entry) {
  constexpr std::size_t digits = 15;  // 60 bits
  return static_cast<off_t>(std::stoull(Fingerprint().add(entry).hex().substr(0, digits), nullptr, 16));
}

/// 0, or errno.
int try_lock(int descriptor, off_t place) {
  struct flock range{};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  range.l_start = place;
  range.l_len = 1;
  return ::fcntl(descriptor, F_OFD_SETLK, &range) == 0 ? 0 : errno;
}

}  // namespace

std::string keep_file(const fs::path& folder, const std::string& name, std::string_view bytes) {
  static std::atomic<unsigned> counter{0};
  std::error_code failure;
  fs::create_directories(folder, failure);
  if (failure) {
    return unwritable(folder, failure);
  }
  remove_old_unfinished(folder);
  // A name that no other process or thread uses; the rename is atomic.
  const fs::path unfinished = folder / (name + "." + std::to_string(getpid()) + "." + std::to_string(counter++) +
                                        std::string(unfinished_extension));
  failure.assign(write_new(unfinished, bytes), std::generic_category());
  if (!failure) {
    fs::rename(unfinished, folder / name, failure);
  }
  if (!failure) {
    return {};
  }
  std::error_code ignored;
  fs::remove(unfinished, ignored);
  return unwritable(folder, failure);
}

void warn_not_kept(const std::string& problem) noexcept {
  static std::atomic<bool> is_said{false};
  if (problem.empty() || is_said.exchange(true)) {
    return;
  }
  try {
    print_note(stderr, "warning: what is compiled is not kept: " + printable(problem) + "\n");
  } catch (const std::exception&) {  // no memory for a message
  }
}

EntryLock::EntryLock(const fs::path& folder, std::string_view entry, std::chrono::milliseconds patience) {
  std::error_code ignored;
  fs::create_directories(folder, ignored);
  const int descriptor = ::open((folder / lock_file).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor < 0) {
    return;
  }
  const off_t place = place_of(entry);
  const auto end = std::chrono::steady_clock::now() + patience;
  int failure = try_lock(descriptor, place);
  for (std::chrono::milliseconds pause{1};
       (failure == EAGAIN || failure == EACCES) && std::chrono::steady_clock::now() < end;
       pause = std::min(2 * pause, std::chrono::milliseconds{50})) {
    std::this_thread::sleep_for(pause);
    failure = try_lock(descriptor, place);
  }
  if (failure == 0) {
    descriptor_ = descriptor;
  } else {
    ::close(descriptor);
  }
}

EntryLock::~EntryLock() {
  if (descriptor_ >= 0) {
    ::close(descriptor_);
  }
}

}  // namespace thresher::runtime
