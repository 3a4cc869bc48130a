#pragma once
/// What /proc says of processes, read without memory of its own: for a process that was forked and not replaced.
#include <sys/types.h>

#include <cstddef>
#include <span>

namespace thresher::runtime {

/// The processes whose parent is the caller, which has one thread; how many of them were written to `out`.
std::size_t children_of_caller(std::span<pid_t> out) noexcept;

/// The processes that descend from `process`, itself left out.
std::size_t descendants_of(pid_t process, std::span<pid_t> out) noexcept;

/// Whether no thread of the process runs or could: all are stopped, or it has ended.
bool is_stopped(pid_t process) noexcept;

}  // namespace thresher::runtime
