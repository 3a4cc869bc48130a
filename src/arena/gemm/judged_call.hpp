#pragma once
/// The call that judge and inspector of the products read.
#include "arena/gemm/inputs.hpp"
#include "arena/operation/inspector.hpp"
#include "arena/operation/operation.hpp"
#include "reference/grouped_judgement.hpp"
#include "reference/plain_sums.hpp"

namespace thresher::arena {

/// Refers to the inputs; the output has the right shape and no data.
inline reference::GroupedCall judged_call(const ProductTask& task, const InputsOfCall& inputs) {
  const FindTensor find = find_in(inputs);
  GroupedTensors tensors = grouped_tensors(task, find);
  const GroupedProblem& p = task.problem;
  tensors.c = p.layout == RowLayout::slots ? Tensor::contiguous(nullptr, p.out, {p.experts, p.rows, p.n})
                                           : Tensor::contiguous(nullptr, p.out, {p.rows, p.n});
  return reference::grouped_call(p, grouped_weights(task, find), tensors);
}

inline reference::PlainSums plain_sums(const ProductTask& task, const Maker& maker) {
  return reference::plain_sums(task.problem.a, task.problem.b, maker.numerics, maker.device);
}

/// By which rule outputs of exact numerics are judged.
inline reference::Rule product_rule(const ProductTask& task, Distribution distribution) {
  const GroupedProblem& p = task.problem;
  if (distribution == Distribution::integers) {
    return reference::Rule::exact;
  }
  const bool is_contest = distribution == Distribution::contest && p.activation &&
                          p.activation->kind == ActivationKind::silu && !p.bias && !p.row_weights &&
                          p.out == Format::fp16;
  return is_contest ? reference::Rule::contest : reference::Rule::general;
}

}  // namespace thresher::arena
