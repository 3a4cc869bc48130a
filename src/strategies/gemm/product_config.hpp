#pragma once
/// The members that configurations of product kernels share, and the problem that a configuration stands for.
#include "strategies/gemm/formats.hpp"
#include "strategies/gemm/problem.hpp"

namespace thresher::strategies::gemm {

/// The dense dual GEMM has kernels with static tiles. Every other product runs as one of groups.
inline bool has_static_tiles(const ProductProblem& problem) {
  return problem.is_dense() && problem.activation && !problem.bias && !problem.row_weights;
}

/// Sets what a problem decides about outputs, and whether rows are gathered.
template <class Config>
void set_outputs(Config& config, const ProductProblem& problem) {
  config.output = number_of(problem.out);
  config.matrices = problem.matrices();
  config.activation = problem.activation ? code_of(problem.activation->kind) : ActivationCode::silu;
  config.bias = problem.bias;
  config.row_weights = problem.row_weights;
  config.gathered = problem.layout == ProductRows::gathered;
}

/// The problem of a configuration for these operands, without extents. `is_dense` says whether it has static tiles.
template <class Config>
ProductProblem problem_of(const Config& config, bool is_dense, const OperandFormats& operands) {
  ProductProblem problem;
  problem.layout = is_dense ? ProductRows::dense : config.gathered ? ProductRows::gathered : ProductRows::contiguous;
  problem.a = operands.tokens;
  problem.b = operands.weights;
  problem.out = format_of(config.output);
  problem.bias = config.bias;
  problem.row_weights = config.row_weights;
  if (config.matrices == 2) {
    problem.activation = Activation{.kind = kind_of(config.activation)};
  }
  return problem;
}

}  // namespace thresher::strategies::gemm
