#pragma once
/// Files that are written atomically.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace thresher::formats {

/// Removes the temporary files of all AtomicFiles of this process that are neither committed nor destroyed. For a
/// signal handler that ends the process: it calls only unlink.
void remove_temporary_files() noexcept;

/// A file without a name in the folder of `target`, to which commit() gives the name. Where the file system has no
/// unnamed files, it has a temporary name, which commit() renames. Without a commit, by an error or an exception,
/// nothing is left and `target` is unchanged. A killed process also leaves nothing, with two exceptions: in a folder
/// that needs temporary names, and while commit() replaces a file. Such leftover names end in six letters. Every
/// failure throws Error(io) naming `target` and the reason.
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
  /// Gives the unnamed file a temporary name, or the target's name if no file has it.
  void give_name();
  void remember() noexcept;
  void forget() noexcept;

  std::filesystem::path target_;
  std::string temporary_;  ///< empty without a name
  int descriptor_ = -1;
};

}  // namespace thresher::formats
