#pragma once
/// Owned tensors of one layer of experts, random and reproducible.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "reference/moe_layer.hpp"
#include "support/grouped_case.hpp"
#include "thresher/moe_layer.hpp"

namespace thresher::test {

/// Choices among all experts and, now and then, of none: below 0, just beyond the last, and far beyond.
inline std::vector<std::int32_t> random_choices(const MoeProblem& problem, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<std::int32_t> any(0, static_cast<std::int32_t>(problem.experts) - 1);
  std::vector<std::int32_t> ids(static_cast<std::size_t>(problem.tokens * problem.top_k));
  for (std::size_t choice = 0; choice < ids.size(); ++choice) {
    switch (choice % 23) {
      case 5: ids[choice] = -1; break;
      case 11: ids[choice] = static_cast<std::int32_t>(problem.experts); break;
      case 17: ids[choice] = 2'000'000'000; break;
      default: ids[choice] = any(random); break;
    }
  }
  return ids;
}

/// Weights and x are random, every row of out is poisoned, and `ids` are the choices of all tokens.
class MoeCase {
 public:
  MoeCase(const MoeProblem& problem, std::vector<std::int32_t> ids, std::int64_t out_row_gap = 0,
          std::optional<GateUpOrder> order = std::nullopt)
      : problem_(problem),
        ids_(std::move(ids)),
        gate_up_(gate_up_problem(problem), form_of(problem, order), 1),
        down_(down_problem(problem), form_of(problem, std::nullopt), 2),
        out_(Matrix::of_values(problem.out, problem.tokens, problem.hidden_size, out_row_gap,
                               [](std::int64_t, std::int64_t) { return 0.0F; })) {
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    weights_.resize(ids_.size());
    std::generate(weights_.begin(), weights_.end(), [&] { return normal(random); });
    out_.poison();
  }
  MoeCase(const MoeCase&) = delete;

  [[nodiscard]] const MoeProblem& problem() const { return problem_; }
  /// Valid until this object is destroyed, as all views are.
  [[nodiscard]] GroupedWeights gate_up() { return gate_up_.weights(); }
  [[nodiscard]] GroupedWeights down() { return down_.weights(); }
  [[nodiscard]] std::vector<std::int32_t>& ids() { return ids_; }
  [[nodiscard]] std::vector<float>& weights() { return weights_; }
  [[nodiscard]] Matrix& x() { return gate_up_.a(); }
  [[nodiscard]] Matrix& out() { return out_; }
  /// Of the first so many tokens.
  [[nodiscard]] MoeTensors tensors(std::int64_t tokens) {
    MoeTensors of{.x = gate_up_.tensors().a,
                  .topk_ids = Tensor::contiguous(ids_.data(), Format::int32, {tokens, problem_.top_k}),
                  .topk_weights = Tensor::contiguous(weights_.data(), Format::fp32, {tokens, problem_.top_k}),
                  .out = out_.view()};
    of.x.shape[0] = tokens;
    of.out.shape[0] = tokens;
    return of;
  }
  [[nodiscard]] MoeTensors tensors() { return tensors(problem_.tokens); }
  [[nodiscard]] reference::Verdict judged(const MoeTensors& tensors, DeviceKind device) {
    return reference::judge_moe_layer({problem_, gate_up(), down(), tensors}, device);
  }

 private:
  /// The groups of the products are the layer's to make: those of the cases are not read.
  static GroupedForm form_of(const MoeProblem& problem, std::optional<GateUpOrder> order) {
    return {.groups = std::vector<std::int32_t>(static_cast<std::size_t>(problem.experts) + 1),
            .row_ids = std::vector<std::int32_t>(static_cast<std::size_t>(problem.tokens * problem.top_k)),
            .order = order};
  }

  MoeProblem problem_;
  std::vector<std::int32_t> ids_;
  GroupedCase gate_up_;
  GroupedCase down_;
  std::vector<float> weights_;
  Matrix out_;
};

}  // namespace thresher::test
