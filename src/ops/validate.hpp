#pragma once
/// The checks that every backend relies on. Each throws Error(invalid_argument) with one sentence.
#include "thresher/dual_gemm.hpp"

namespace thresher::ops {

/// Shape, formats and activation parameters of the problem itself.
void validate(const DualGemmProblem& problem);
/// B1 (gate) and B2 (up) against the problem and the device.
void validate_weights(const DualGemmProblem& problem, const Tensor& b1_gate, const Tensor& b2_up, DeviceId device);
/// A and the workspace of one run, and all of its arguments. `alignment` is what the backend needs of data pointers, in
/// bytes.
void validate_tokens(const DualGemmProblem& problem, const Tensor& a, const void* workspace,
                     std::size_t workspace_bytes, std::size_t alignment, DeviceId device);
void validate_run(const DualGemmProblem& problem, const Tensor& a, const Tensor& c, const void* workspace,
                  std::size_t workspace_bytes, std::size_t alignment, DeviceId device);
/// B1 and B2 against each other, before any problem is known.
void validate_pair(const Tensor& b1_gate, const Tensor& b2_up, DeviceId device);

}  // namespace thresher::ops
