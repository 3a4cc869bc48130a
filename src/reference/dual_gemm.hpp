#pragma once
/// THE definition of the dual GEMM, in float64; all results are compared with it.
#include <vector>

#include "thresher/dual_gemm.hpp"
#include "thresher/tensor.hpp"

namespace thresher::reference {

/// Throws Error(invalid_argument) naming the operand unless a, b1 and b2 are CPU matrices as the problem states.
void check_operands(const DualGemmProblem& problem, const Tensor& a, const Tensor& b1_gate, const Tensor& b2_up);

/// Row-major [m, n], not rounded to the output format: output_element(A·B1ᵀ, A·B2ᵀ), where B1 is the GATE and B2 is UP.
/// Global scales multiply the finished products. One element at a time, K in ascending order.
std::vector<double> dual_gemm(const DualGemmProblem& problem, const Tensor& a, const Tensor& b1_gate,
                              const Tensor& b2_up);

}  // namespace thresher::reference
