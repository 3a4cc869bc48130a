#pragma once
/// The checks that every attention backend relies on. Each throws Error(invalid_argument) with one sentence.
#include "thresher/attention.hpp"

namespace thresher::ops {

/// Shapes, format and options of the problem itself.
void validate(const AttentionProblem& problem);
/// The tensors of one run: formats, shapes, strides, alignment, memory; on the CPU the contents of cu_seqlens too.
void validate_run(const AttentionProblem& problem, const AttentionTensors& tensors, DeviceId device);

}  // namespace thresher::ops
