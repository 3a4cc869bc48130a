#pragma once
/// The checks that appending relies on. Each throws Error(invalid_argument) with one sentence.
#include "thresher/append.hpp"

namespace thresher::ops {

/// Shapes and formats of the problem itself.
void validate(const AppendProblem& problem);
/// The tensors of one run, on the CPU the contents of positions, slots and descales too.
void validate_run(const AppendProblem& problem, const AppendTensors& tensors, DeviceId device);

}  // namespace thresher::ops
