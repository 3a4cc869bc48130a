#pragma once
/// RoPE and appending of new tokens on the CPU.
#include "thresher/append.hpp"

namespace thresher::cpu {

/// Validated arguments on the CPU; synchronous. The result does not depend on `threads` (0 for all).
void append(const AppendProblem& problem, const AppendTensors& tensors, int threads);

}  // namespace thresher::cpu
