#pragma once
/// Files that appear whole or not at all.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace thresher::formats {

/// Removes the temporary files of all AtomicFiles of this process that are neither committed nor destroyed. For a
/// signal handler that ends the process: it calls nothing but unlink.
void remove_temporary_files() noexcept;

/// A file written beside `target` under a temporary name and renamed onto it by commit(). Without a commit, by an error
/// or an exception, the temporary file is removed and `target` stays as it was. Every failure throws Error(io) naming
/// `target` and the reason.
class AtomicFile {
 public:
  /// `target` may exist as a regular file, which commit() replaces; a symbolic link is followed.
  explicit AtomicFile(const std::filesystem::path& target);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write_at(std::uint64_t offset, std::span<const std::byte> bytes);
  /// On return the content is on the disk under its final name.
  void commit();

 private:
  [[noreturn]] void fail(int error_number) const;
  void remember() noexcept;
  void forget() noexcept;

  std::filesystem::path target_;
  std::string temporary_;  ///< empty when there is none
  int descriptor_ = -1;
};

}  // namespace thresher::formats
