#include "core/integers.hpp"
#include "thresher/moe_layer.hpp"

namespace thresher {

GroupedProblem gate_up_problem(const MoeProblem& problem) noexcept {
  return {.experts = problem.experts,
          .rows = size_product(problem.tokens, problem.top_k),
          .n = problem.intermediate_size,
          .k = problem.hidden_size,
          .tokens = problem.tokens,
          .expected_rows = problem.expected_rows,
          .layout = RowLayout::gathered,
          .row_ids_divisor = problem.top_k,
          .a = problem.quantized_x.value_or(problem.x),
          .b = problem.gate_up,
          .out = problem.intermediate,
          .activation = problem.activation,
          .bias = problem.gate_up_bias};
}

GroupedProblem down_problem(const MoeProblem& problem) noexcept {
  return {.experts = problem.experts,
          .rows = size_product(problem.tokens, problem.top_k),
          .n = problem.hidden_size,
          .k = problem.intermediate_size,
          .expected_rows = problem.expected_rows,
          .layout = RowLayout::packed,
          .a = problem.intermediate,
          .b = problem.down,
          .out = problem.rows,
          .bias = problem.down_bias};
}

}  // namespace thresher
