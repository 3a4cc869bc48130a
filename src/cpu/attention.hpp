#pragma once
/// Attention on the CPU, in blocks of queries × keys: the matrix of logits never exists as a whole.
#include "thresher/attention.hpp"

namespace thresher::cpu {

/// Validated arguments on the CPU; synchronous. The result does not depend on `threads` (0 for all).
void attention(const AttentionProblem& problem, const AttentionTensors& tensors, int threads);

}  // namespace thresher::cpu
