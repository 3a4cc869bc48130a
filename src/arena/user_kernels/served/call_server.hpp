#pragma once
/// The other end: the process in which a kernel runs. It is told what to load, where tensors lie and when to call, and
/// nothing else: no seed, no reference, no purpose.
namespace thresher::arena::user_kernels {

/// Answers on line_descriptor until that is closed, and does not return then: nothing of a kernel may run any more.
[[noreturn]] void serve_calls();

}  // namespace thresher::arena::user_kernels
