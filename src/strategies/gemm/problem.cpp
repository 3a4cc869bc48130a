#include "strategies/gemm/problem.hpp"

namespace thresher::strategies::gemm {
namespace {

ProductRows product_rows(RowLayout layout) {
  switch (layout) {
    case RowLayout::packed: return ProductRows::contiguous;
    case RowLayout::slots: return ProductRows::masked;
    case RowLayout::gathered: return ProductRows::gathered;
  }
  return ProductRows::contiguous;
}

RowLayout row_layout(ProductRows rows) {
  switch (rows) {
    case ProductRows::masked: return RowLayout::slots;
    case ProductRows::gathered: return RowLayout::gathered;
    case ProductRows::dense:
    case ProductRows::contiguous: break;
  }
  return RowLayout::packed;
}

}  // namespace

ProductProblem::ProductProblem(const DualGemmProblem& problem)
    : rows(problem.m),
      n(problem.n),
      k(problem.k),
      a(problem.a),
      b(problem.b),
      out(problem.out),
      activation(problem.activation) {}

ProductProblem::ProductProblem(const GemmProblem& problem)
    : rows(problem.m),
      n(problem.n),
      k(problem.k),
      a(problem.a),
      b(problem.b),
      out(problem.out),
      activation(problem.activation),
      bias(problem.bias) {}

ProductProblem::ProductProblem(const GroupedProblem& problem)
    : layout(product_rows(problem.layout)),
      experts(problem.experts),
      rows(problem.rows),
      n(problem.n),
      k(problem.k),
      tokens(problem.tokens),
      expected_rows(problem.expected_rows),
      row_ids_divisor(problem.row_ids_divisor),
      a(problem.a),
      b(problem.b),
      out(problem.out),
      activation(problem.activation),
      bias(problem.bias),
      row_weights(problem.row_weights) {}

DualGemmProblem ProductProblem::dual_gemm() const {
  return {.m = rows, .n = n, .k = k, .a = a, .b = b, .out = out, .activation = activation.value()};
}

GroupedProblem ProductProblem::grouped() const {
  return {.experts = experts,
          .rows = rows,
          .n = n,
          .k = k,
          .tokens = tokens,
          .expected_rows = expected_rows,
          .layout = row_layout(layout),
          .row_ids_divisor = row_ids_divisor,
          .a = a,
          .b = b,
          .out = out,
          .activation = activation,
          .bias = bias,
          .row_weights = row_weights};
}

}  // namespace thresher::strategies::gemm
