#pragma once
/// Owned tensors of one plain product, random and reproducible.
#include <algorithm>
#include <cstdint>

#include "reference/grouped_judgement.hpp"
#include "strategies/gemm/problem.hpp"
#include "support/grouped_case.hpp"
#include "thresher/gemm.hpp"

namespace thresher::test {

/// Seen as those of one expert that owns every row. Every row of C is poisoned.
class GemmCase {
 public:
  explicit GemmCase(const GemmProblem& problem, Format bias_format = Format::bf16, const Layout& layout = {})
      : problem_(problem),
        of_(strategies::gemm::ProductProblem(problem).grouped(),
            {.groups = {0, static_cast<std::int32_t>(problem.m)}, .bias_format = bias_format, .layout = layout}) {}

  [[nodiscard]] const GemmProblem& problem() const { return problem_; }
  /// Valid until this object is destroyed, as all views are.
  [[nodiscard]] GemmWeights weights() {
    const GroupedWeights stacks = of_.weights();
    return {.b = matrix(stacks.b1), .bias = matrix(stacks.bias1)};
  }
  [[nodiscard]] GroupedTensors tensors() { return of_.tensors(); }
  [[nodiscard]] bool is_untouched(std::int64_t row) { return of_.is_untouched(row); }
  [[nodiscard]] bool gaps_intact() { return of_.c().gaps_intact(); }
  void poison() { of_.c().poison(); }

  /// Of the first `rows` rows.
  [[nodiscard]] reference::Verdict judged(std::int64_t rows, Numerics numerics = Numerics::exact,
                                          reference::Accumulation accumulation = reference::Accumulation::float32) {
    GroupedTensors tensors = of_.tensors();
    tensors.offsets = {};
    tensors.a.shape[0] = tensors.c.shape[0] = rows;
    const reference::GroupedCall call = reference::grouped_call(of_.problem(), of_.weights(), tensors);
    return judge_grouped(call, reference::Rule::general, reference::whole(call), accumulation, numerics);
  }

 private:
  /// Of a stack of one.
  static Tensor matrix(const Tensor& stack) {
    Tensor one = stack;
    one.rank = std::max(0, stack.rank - 1);
    std::copy(stack.shape.begin() + 1, stack.shape.end(), one.shape.begin());
    std::copy(stack.strides.begin() + 1, stack.strides.end(), one.strides.begin());
    return one;
  }

  GemmProblem problem_;
  GroupedCase of_;
};

}  // namespace thresher::test
