#include "ops/validate.hpp"

#include <cstdint>
#include <utility>

#include "ops/tensor_checks.hpp"

namespace thresher::ops {
namespace {

void check_matrix_at(const char* argument, const Tensor& tensor, Format format, std::int64_t rows, std::int64_t columns,
                     std::size_t alignment, DeviceId device) {
  check_matrix(argument, tensor, format, rows, columns, device, OperandRole::tokens);
  check_alignment(argument, tensor, alignment);
}

}  // namespace

void validate(const DualGemmProblem& problem) {
  check_operand_format("problem.a", problem.a);
  check_operand_format("problem.b", problem.b);
  for (const auto& [argument, extent] :
       {std::pair{"m", problem.m}, std::pair{"n", problem.n}, std::pair{"k", problem.k}}) {
    check_extent(argument, extent, 0);
  }
  check_output(problem.out, problem.n);
  check_depth(problem.k, problem.a, problem.b);
  check_activation(problem.activation);
}

void validate_pair(const Tensor& b1_gate, const Tensor& b2_up, DeviceId device) {
  check_operand_format("b1 (gate)", b1_gate.format);
  check_matrix("b1 (gate)", b1_gate, b1_gate.format, b1_gate.shape[0], b1_gate.shape[1], device, OperandRole::weights);
  check_matrix("b2 (up)", b2_up, b1_gate.format, b1_gate.shape[0], b1_gate.shape[1], device, OperandRole::weights);
}

void validate_weights(const DualGemmProblem& problem, const Tensor& b1_gate, const Tensor& b2_up, DeviceId device) {
  check_matrix("b1 (gate)", b1_gate, problem.b, problem.n, problem.k, device, OperandRole::weights);
  check_matrix("b2 (up)", b2_up, problem.b, problem.n, problem.k, device, OperandRole::weights);
}

void validate_tokens(const DualGemmProblem& problem, const Tensor& a, const void* workspace,
                     std::size_t workspace_bytes, std::size_t alignment, DeviceId device) {
  if (a.rank == 2 && (a.shape[0] < 0 || a.shape[0] > problem.m)) {
    refuse("a has {} rows, expected 0 to {}, which the plan was made for", a.shape[0], problem.m);
  }
  check_matrix_at("a", a, problem.a, a.shape[0], problem.k, alignment, device);
  check_workspace(workspace, workspace_bytes);
  check_outside_workspace("a", a, workspace, workspace_bytes);
}

void validate_run(const DualGemmProblem& problem, const Tensor& a, const Tensor& c, const void* workspace,
                  std::size_t workspace_bytes, std::size_t alignment, DeviceId device) {
  validate_tokens(problem, a, workspace, workspace_bytes, alignment, device);
  check_matrix_at("c", c, problem.out, a.shape[0], problem.n, alignment, device);
  check_scales_not_overlapping(c);
  check_not_overlapping(c, "a", a);
  check_outside_workspace("c", c, workspace, workspace_bytes);
}

}  // namespace thresher::ops
