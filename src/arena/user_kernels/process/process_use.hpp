#pragma once
/// How much a process uses, as this system tells: what no limit of its own counts is in it too.
#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace thresher::arena::user_kernels {

struct ProcessUse {
  std::uint64_t memory_bytes = 0;  ///< that is nobody else's, in memory or swapped out, with the tables of its pages
  std::uint64_t threads = 0;
};

/// Nothing where the process has ended or this system does not tell.
[[nodiscard]] std::optional<ProcessUse> use_of(pid_t process);

}  // namespace thresher::arena::user_kernels
