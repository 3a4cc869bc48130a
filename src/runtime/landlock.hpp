#pragma once
/// The files that a confined process can access, as Landlock's rules. The kernel's interface is declared here, since
/// its headers are often older than the kernel.
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>

namespace thresher::runtime {

class Landlock {
 public:
  enum class Reach : std::uint8_t {
    read,     ///< files and folders below
    run,      ///< the same, and execution of programs
    change,   ///< everything except execution of programs
    control,  ///< device files: read, write and control
  };

  Landlock();
  Landlock(const Landlock&) = delete;
  Landlock& operator=(const Landlock&) = delete;
  ~Landlock();

  /// Why Landlock is missing on this machine; empty when it is available.
  [[nodiscard]] const std::string& problem() const { return problem_; }
  [[nodiscard]] int abi() const { return abi_; }
  [[nodiscard]] bool guards_truncation() const;
  /// The descriptor that must be open until `apply`; -1 when there is none.
  [[nodiscard]] int descriptor() const { return ruleset_; }

  /// A path that cannot be opened is ignored.
  void allow(const std::filesystem::path& path, Reach reach) noexcept;

  /// The process may write below /proc/self/task, as it must to name its threads.
  void allow_naming_threads() noexcept { names_threads_ = true; }

  /// A process will fork others with their own rules about /proc: these rules must not limit them further there.
  void allow_all_processes() noexcept;

  /// The process `process` may read its files in /proc, which `apply` allows the caller.
  void allow_process(pid_t process) noexcept;

  /// Applies to the calling thread, whose privileges are fixed already, and all that it starts; /proc/self may be read.
  /// Returns 0 or errno. Safe between fork and exec.
  [[nodiscard]] int apply() noexcept;

 private:
  bool allow_path(const char* path, std::uint64_t access) noexcept;
  void allow_folder_of_process(const char* folder, const char* threads) noexcept;

  int abi_ = 0;
  int ruleset_ = -1;
  std::uint64_t handled_ = 0;
  bool names_threads_ = false;
  std::string problem_;
};

}  // namespace thresher::runtime
