#include "reference/dual_gemm.hpp"

#include "formats/elements.hpp"
#include "reference/activation.hpp"

namespace thresher::reference {
namespace {

double product_element(const Tensor& a, std::int64_t row, const Tensor& b, std::int64_t column) {
  double sum = 0.0;
  for (std::int64_t k = 0; k < a.shape[1]; ++k) {
    sum += formats::element(a, row, k) * formats::element(b, column, k);
  }
  return sum * formats::global_scale(a) * formats::global_scale(b);
}

}  // namespace

void check_operands(const DualGemmProblem& problem, const Tensor& a, const Tensor& b1_gate, const Tensor& b2_up) {
  formats::check_matrix(a, "a", problem.m, problem.k, problem.a);
  formats::check_matrix(b1_gate, "b1 (gate)", problem.n, problem.k, problem.b);
  formats::check_matrix(b2_up, "b2 (up)", problem.n, problem.k, problem.b);
}

std::vector<double> dual_gemm(const DualGemmProblem& problem, const Tensor& a, const Tensor& b1_gate,
                              const Tensor& b2_up) {
  check_operands(problem, a, b1_gate, b2_up);
  std::vector<double> out;
  out.reserve(static_cast<std::size_t>(problem.m * problem.n));
  for (std::int64_t row = 0; row < problem.m; ++row) {
    for (std::int64_t column = 0; column < problem.n; ++column) {
      const double gate = product_element(a, row, b1_gate, column);
      const double up = product_element(a, row, b2_up, column);
      out.push_back(output_element(gate, up, problem.activation));
    }
  }
  return out;
}

}  // namespace thresher::reference
