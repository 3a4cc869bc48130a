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

/// A file written without a name in the folder of `target`, which commit() gives it; where the file system has none
/// without a name, under a temporary one, which commit() renames. Without a commit, by an error or an exception,
/// nothing is left and `target` stays as it was. So it is where the process is killed, but in a folder that needs
/// temporary names and while commit() replaces a file: they end in six letters. Every failure throws Error(io) naming
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
  void make_nameless() noexcept;
  void make_temporary();
  /// Gives the file without a name a temporary one, or the target's, if no file has it.
  void give_name();
  void remember() noexcept;
  void forget() noexcept;

  std::filesystem::path target_;
  std::string temporary_;  ///< empty when it has no name
  int descriptor_ = -1;
};

}  // namespace thresher::formats
