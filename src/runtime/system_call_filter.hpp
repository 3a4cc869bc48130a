#pragma once
/// The system calls of a confined process, as a program for seccomp.
#include <linux/filter.h>
#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

namespace thresher::runtime {

struct FilterOptions {
  bool may_fork = false;
  bool may_exec = false;
  bool is_template = false;            ///< forks copies of itself that apply filters with their own process numbers
  bool drives_devices = false;         ///< through a driver's library, with files in memory and its own socket
  bool memory_is_counted = false;      ///< by a limit that only counts private memory, so that other memory is denied
  bool truncation_is_guarded = false;  ///< by Landlock, so that this filter need not deny it everywhere
};

class SystemCallFilter {
 public:
  explicit SystemCallFilter(const FilterOptions& options);

  /// Why there is none for this machine; empty when there is one.
  [[nodiscard]] const std::string& problem() const { return problem_; }

  /// The program for the process `process` to apply; empty when there is none.
  [[nodiscard]] std::vector<sock_filter> for_process(pid_t process) const;

  /// Applies it to every thread of the calling process, whose privileges are fixed already; returns 0 or errno. Safe
  /// between fork and exec.
  [[nodiscard]] int apply() noexcept;

 private:
  std::vector<sock_filter> program_;
  std::vector<std::size_t> own_pids_;  ///< instructions that compare with the number of the calling process
  std::string problem_;
};

}  // namespace thresher::runtime
