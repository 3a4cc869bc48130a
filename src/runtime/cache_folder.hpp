#pragma once
/// The folder of compiled programs, which several processes share: files are written atomically, and locks say which
/// process makes which.
#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>

namespace thresher::runtime {

/// Writes `bytes` to folder/name. Empty when the file exists now; otherwise one sentence with the folder and the
/// reason. Removes files of writers that were killed more than an hour ago.
[[nodiscard]] std::string keep_file(const std::filesystem::path& folder, const std::string& name,
                                    std::string_view bytes);

/// Warns on standard error, once per process, that compiled code is not kept. Prints nothing for an empty `problem`.
void warn_not_kept(const std::string& problem) noexcept;

/// While it is held, no other process, and no other thread of this one, holds that of the same entry. A process that
/// ends releases its locks. A lock only saves work: if the file system has none, or `patience` ends, the caller
/// continues without it.
class EntryLock {
 public:
  /// Waits for up to `patience` for the current holder.
  EntryLock(const std::filesystem::path& folder, std::string_view entry, std::chrono::milliseconds patience);
  ~EntryLock();
  EntryLock(const EntryLock&) = delete;
  EntryLock& operator=(const EntryLock&) = delete;

  [[nodiscard]] bool held() const noexcept { return descriptor_ >= 0; }

 private:
  int descriptor_ = -1;
};

}  // namespace thresher::runtime
