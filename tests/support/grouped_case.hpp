#pragma once
/// Owned tensors of one grouped product, random and reproducible.
#include <cstdint>
#include <optional>
#include <vector>

#include "support/dual_gemm_case.hpp"
#include "thresher/grouped_gemm.hpp"

namespace thresher::test {

/// What a case is besides its problem.
struct GroupedForm {
  std::vector<std::int32_t> groups{};   ///< offsets, with slots counts
  std::vector<std::int32_t> row_ids{};  ///< gathered
  std::optional<GateUpOrder> order{};   ///< gate and up in one tensor
  Format bias_format = Format::fp32;
  Layout layout{};  ///< of the matrices
};

/// Every row of C is poisoned.
class GroupedCase {
 public:
  GroupedCase(const GroupedProblem& problem, GroupedForm form, unsigned seed = 1);
  GroupedCase(const GroupedCase&) = delete;

  [[nodiscard]] const GroupedProblem& problem() const { return problem_; }
  /// Valid until this object is destroyed.
  [[nodiscard]] GroupedWeights weights();
  [[nodiscard]] GroupedTensors tensors();
  [[nodiscard]] std::vector<std::int32_t>& groups() { return form_.groups; }
  [[nodiscard]] std::vector<std::int32_t>& row_ids() { return form_.row_ids; }
  [[nodiscard]] Matrix& a() { return operands_.a; }
  [[nodiscard]] Matrix& c() { return operands_.c; }
  /// Whether a row of C, with slots one behind the other, and its scales hold the poison still.
  [[nodiscard]] bool is_untouched(std::int64_t row);

 private:
  [[nodiscard]] Tensor stack(Matrix& matrix, std::int64_t rows);

  GroupedProblem problem_;
  GroupedForm form_;
  DualGemmCase operands_;  ///< A, and the rows of all experts one behind the other
  std::vector<float> slot_scales_;
  std::vector<float> gate_scales_;
  std::vector<float> up_scales_;
  std::vector<float> out_scales_;  ///< of slots
  std::vector<Matrix> biases_;
  std::vector<float> row_weights_;
};

}  // namespace thresher::test
