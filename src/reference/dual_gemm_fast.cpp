#include "reference/dual_gemm_fast.hpp"

#include "reference/activation.hpp"
#include "reference/dual_gemm.hpp"
#include "reference/output_format.hpp"

namespace thresher::reference {
namespace {

template <typename Activate>
Outputs evaluate(const DualGemmProblem& problem, const Tensor& a, const Tensor& b1_gate, const Tensor& b2_up,
                 const Region& region, Accumulation accumulation, int threads, Activate value_of) {
  check_operands(problem, a, b1_gate, b2_up);
  const auto elements = static_cast<std::size_t>(region.elements());
  Outputs out{std::vector<double>(elements), std::vector<double>(elements), std::vector<double>(elements)};
  products(a, b1_gate, b2_up, region, accumulation, threads,
           [&](std::size_t row, std::size_t column, double gate, double up) {
             const std::size_t at = row * region.columns.size() + column;
             out.gate[at] = gate;
             out.up[at] = up;
             out.value[at] = value_of(gate, up);
           });
  return out;
}

}  // namespace

Outputs dual_gemm_fast(const DualGemmProblem& problem, const Tensor& a, const Tensor& b1_gate, const Tensor& b2_up,
                       const Region& region, int threads) {
  return evaluate(problem, a, b1_gate, b2_up, region, Accumulation::float64, threads,
                  [&](double gate, double up) { return output_element(gate, up, problem.activation); });
}

Outputs plain_low_precision(const DualGemmProblem& problem, const Tensor& a, const Tensor& b1_gate, const Tensor& b2_up,
                            const Region& region, Accumulation accumulation, int threads) {
  return evaluate(problem, a, b1_gate, b2_up, region, accumulation, threads, [&](double gate, double up) {
    const float value = activate(static_cast<float>(gate), static_cast<float>(up), problem.activation);
    return round_to(problem.out, static_cast<double>(value));
  });
}

}  // namespace thresher::reference
