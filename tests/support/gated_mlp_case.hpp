#pragma once
/// Owned tensors of one gated MLP, random and reproducible.
#include <cstdint>

#include "reference/moe_layer.hpp"
#include "support/dual_gemm_case.hpp"
#include "thresher/gated_mlp.hpp"

namespace thresher::test {

/// Every row of out is poisoned.
class GatedMlpCase {
 public:
  explicit GatedMlpCase(const GatedMlpProblem& problem, const Layout& layout = {})
      : problem_(problem),
        gate_up_(DualGemmCase::random({.m = problem.tokens,
                                       .n = problem.intermediate_size,
                                       .k = problem.hidden_size,
                                       .a = problem.x,
                                       .b = problem.gate_up,
                                       .out = problem.intermediate},
                                      layout, 1)),
        down_(DualGemmCase::random({.m = problem.tokens,
                                    .n = problem.hidden_size,
                                    .k = problem.intermediate_size,
                                    .a = problem.intermediate,
                                    .b = problem.down,
                                    .out = problem.out},
                                   layout, 2)) {}
  GatedMlpCase(const GatedMlpCase&) = delete;

  [[nodiscard]] const GatedMlpProblem& problem() const { return problem_; }
  /// Valid until this object is destroyed, as all views are.
  [[nodiscard]] GatedMlpWeights weights() {
    return {.gate = is_gated(problem_.activation) ? gate_up_.b1_gate.view() : Tensor{},
            .up = gate_up_.b2_up.view(),
            .down = down_.b1_gate.view()};
  }
  /// The first so many rows.
  [[nodiscard]] Tensor x(std::int64_t tokens) { return first_rows(gate_up_.a.view(), tokens); }
  [[nodiscard]] Tensor out(std::int64_t tokens) { return first_rows(down_.c.view(), tokens); }
  [[nodiscard]] Matrix& out() { return down_.c; }
  [[nodiscard]] reference::Verdict judged(std::int64_t tokens, DeviceKind device) {
    return reference::judge_gated_mlp(problem_, weights(), x(tokens), out(tokens), device);
  }

 private:
  static Tensor first_rows(Tensor matrix, std::int64_t rows) {
    matrix.shape[0] = rows;
    return matrix;
  }

  GatedMlpProblem problem_;
  DualGemmCase gate_up_;
  DualGemmCase down_;
};

}  // namespace thresher::test
