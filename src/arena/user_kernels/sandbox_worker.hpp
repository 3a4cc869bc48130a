#pragma once
/// The other end: the process that judges a kernel from outside.
namespace thresher::arena::user_kernels {

/// Reads a request from worker_descriptor, holds the match, and tells of every gate there. Dies with its parent.
/// Returns the exit status.
[[nodiscard]] int work_in_sandbox();

}  // namespace thresher::arena::user_kernels
