#pragma once
/// Reads /proc without allocating memory: for a process that was forked without exec.
#include <sys/types.h>

#include <cstddef>
#include <span>

namespace thresher::runtime {

/// Writes the child processes of the caller, which has one thread, to `out`; returns their number.
std::size_t children_of_caller(std::span<pid_t> out) noexcept;

/// The descendants of `process`, without itself.
std::size_t descendants_of(pid_t process, std::span<pid_t> out) noexcept;

/// Whether no thread of the process runs or can run: all are stopped, or it has ended.
bool is_stopped(pid_t process) noexcept;

}  // namespace thresher::runtime
