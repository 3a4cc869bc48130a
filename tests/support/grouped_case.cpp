#include "support/grouped_case.hpp"

#include <algorithm>
#include <random>

namespace thresher::test {
namespace {

std::int64_t rows_of_a(const GroupedProblem& p) {
  return p.layout == RowLayout::slots ? p.experts * p.rows : p.layout == RowLayout::gathered ? p.tokens : p.rows;
}

std::int64_t rows_of_c(const GroupedProblem& p) { return p.layout == RowLayout::slots ? p.experts * p.rows : p.rows; }

/// A dual GEMM with all experts' rows in its weights.
DualGemmCase operands_of(const GroupedProblem& p, const GroupedForm& form, unsigned seed) {
  DualGemmCase made = DualGemmCase::random(
      {.m = rows_of_a(p), .n = p.experts * p.n * (form.order ? 2 : 1), .k = p.k, .a = p.a, .b = p.b, .out = p.out},
      form.layout, seed);
  if (p.a == Format::nvfp4 && p.layout == RowLayout::slots) {
    made.a.stack_scales(p.rows);
  }
  if (p.b == Format::nvfp4 && !form.order) {
    made.b1_gate.stack_scales(p.n);
    made.b2_up.stack_scales(p.n);
  }
  made.c = Matrix::output(p.out, p.layout == RowLayout::slots ? p.experts : 1, p.rows, p.n, form.layout);
  return made;
}

}  // namespace

GroupedCase::GroupedCase(const GroupedProblem& problem, GroupedForm form, unsigned seed)
    : problem_(problem), form_(std::move(form)), operands_(operands_of(problem_, form_, seed)) {
  std::mt19937 random(seed + 1);
  std::uniform_real_distribution<float> factor(0.5F, 2.0F);
  std::normal_distribution<float> normal;
  for (std::int64_t expert = 0; expert < problem_.experts; ++expert) {
    const float* const of_a = operands_.a.view().global_scale;
    const float* const of_gate = operands_.b1_gate.view().global_scale;
    const float* const of_up = operands_.b2_up.view().global_scale;
    slot_scales_.push_back(factor(random) * (of_a == nullptr ? 1.0F : *of_a));
    gate_scales_.push_back(factor(random) * (of_gate == nullptr ? 1.0F : *of_gate));
    up_scales_.push_back(factor(random) * (of_up == nullptr ? 1.0F : *of_up));
    const float* const of_c = operands_.c.view().global_scale;
    out_scales_.push_back((of_c == nullptr ? 1.0F : *of_c) * (expert % 2 == 0 ? 1.0F : 1.5F));
  }
  for (int i = 0; i < 2 && problem_.bias; ++i) {
    biases_.push_back(Matrix::of_values(form_.bias_format, problem_.experts, problem_.n * (form_.order ? 2 : 1), 0,
                                        [&](std::int64_t, std::int64_t) { return normal(random); }));
  }
  row_weights_.resize(static_cast<std::size_t>(rows_of_c(problem_)));
  std::generate(row_weights_.begin(), row_weights_.end(), [&] { return normal(random); });
}

Tensor GroupedCase::stack(Matrix& matrix, std::int64_t rows) {
  Tensor tensor = matrix.view();
  tensor.rank = 3;
  tensor.shape = {problem_.experts, rows, tensor.shape[1]};
  tensor.strides = {rows * tensor.strides[0], tensor.strides[0], 1};
  return tensor;
}

GroupedWeights GroupedCase::weights() {
  const bool has_scales =
      problem_.b == Format::fp8_tensor || (problem_.b == Format::nvfp4 && form_.layout.global_scales);
  GroupedWeights weights;
  weights.order = form_.order;
  weights.b1 = stack(operands_.b1_gate, problem_.n * (form_.order ? 2 : 1));
  weights.b1.global_scale = has_scales ? gate_scales_.data() : nullptr;
  if (form_.order) {
    weights.up_global_scale = has_scales ? up_scales_.data() : nullptr;
  } else if (is_gated(problem_.activation)) {
    weights.b2 = stack(operands_.b2_up, problem_.n);
    weights.b2.global_scale = has_scales ? up_scales_.data() : nullptr;
  }
  if (problem_.bias) {
    weights.bias1 = biases_[0].view();
    weights.bias2 = form_.order || !is_gated(problem_.activation) ? Tensor{} : biases_[1].view();
  }
  return weights;
}

GroupedTensors GroupedCase::tensors() {
  const bool has_slots = problem_.layout == RowLayout::slots;
  const auto integers = [](std::vector<std::int32_t>& values) {
    return Tensor::contiguous(values.data(), Format::int32, {static_cast<std::int64_t>(values.size())});
  };
  GroupedTensors tensors;
  tensors.a = has_slots ? stack(operands_.a, problem_.rows) : operands_.a.view();
  if (has_slots && tensors.a.global_scale != nullptr) {
    tensors.a.global_scale = slot_scales_.data();
  }
  tensors.c = has_slots ? stack(operands_.c, problem_.rows) : operands_.c.view();
  if (has_slots && tensors.c.global_scale != nullptr) {
    tensors.c.global_scale = out_scales_.data();
  }
  (has_slots ? tensors.counts : tensors.offsets) = integers(form_.groups);
  if (problem_.layout == RowLayout::gathered) {
    tensors.row_ids = integers(form_.row_ids);
  }
  if (problem_.row_weights) {
    tensors.row_weights = has_slots
                              ? Tensor::contiguous(row_weights_.data(), Format::fp32, {problem_.experts, problem_.rows})
                              : Tensor::contiguous(row_weights_.data(), Format::fp32, {problem_.rows});
  }
  return tensors;
}

bool GroupedCase::is_untouched(std::int64_t row) { return operands_.c.is_poison(row); }

}  // namespace thresher::test
