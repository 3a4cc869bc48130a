#pragma once
/// The folder of compiled programs, which several processes share: files that appear whole or not at all, and who makes
/// which of them.
#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>

namespace thresher::runtime {

/// Writes `bytes` to folder/name. Empty when the file is there now; else one sentence with the folder and the reason.
/// Removes what writers left behind that were ended more than an hour ago.
[[nodiscard]] std::string keep_file(const std::filesystem::path& folder, const std::string& name,
                                    std::string_view bytes);

/// Says on standard error, once in the life of the process, that what was compiled is not kept. Nothing of an empty
/// `problem`.
void warn_not_kept(const std::string& problem) noexcept;

/// While it is held, no other process, and no other thread of this one, holds that of the same entry. A process that
/// ends gives its locks back. It only saves work: where it cannot be had, by the file system's or for want of patience,
/// whoever asked goes on without.
class EntryLock {
 public:
  /// Waits for up to `patience` for the one who holds it.
  EntryLock(const std::filesystem::path& folder, std::string_view entry, std::chrono::milliseconds patience);
  ~EntryLock();
  EntryLock(const EntryLock&) = delete;
  EntryLock& operator=(const EntryLock&) = delete;

  [[nodiscard]] bool held() const noexcept { return descriptor_ >= 0; }

 private:
  int descriptor_ = -1;
};

}  // namespace thresher::runtime
