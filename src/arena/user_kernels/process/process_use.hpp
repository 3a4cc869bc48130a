#pragma once
/// The resource use of a process as the system reports it, including memory that no limit of its own counts.
#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace thresher::arena::user_kernels {

struct ProcessUse {
  std::uint64_t memory_bytes = 0;  ///< private to it, in memory or swapped out, with its page tables
  std::uint64_t threads = 0;
};

/// Empty where the process has ended or this system does not report it.
[[nodiscard]] std::optional<ProcessUse> use_of(pid_t process);

}  // namespace thresher::arena::user_kernels
