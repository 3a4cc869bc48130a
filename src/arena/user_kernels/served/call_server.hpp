#pragma once
/// The other end: the process in which a kernel runs. It only learns what to load, where tensors are and when to call:
/// no seed, no reference, no purpose.
namespace thresher::arena::user_kernels {

/// Answers on line_descriptor until it is closed. It never returns, so that no code of a kernel runs afterwards.
[[noreturn]] void serve_calls();

}  // namespace thresher::arena::user_kernels
