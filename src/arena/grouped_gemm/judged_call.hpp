#pragma once
/// What judge and inspector of the grouped products share.
#include "arena/dual_gemm/judge.hpp"
#include "arena/grouped_gemm/inputs.hpp"
#include "arena/operation/inspector.hpp"
#include "reference/grouped_judgement.hpp"
#include "reference/plain_sums.hpp"

namespace thresher::arena {

/// The tensor of a name among those of a call; of rank 0 where there is none.
inline Tensor tensor_among(const InputsOfCall& inputs, std::string_view name) {
  for (const HostTensor* const input : inputs) {
    if (input->name == name) {
      return input->view();
    }
  }
  return Tensor{};
}

/// Of inputs, which it refers to; the output is one of the right shape without data.
inline reference::GroupedCall judged_call(const GroupedTask& task, const InputsOfCall& inputs) {
  const FindTensor find = [&](std::string_view name) { return tensor_among(inputs, name); };
  GroupedTensors tensors = grouped_tensors(task, find);
  const GroupedProblem& p = task.problem;
  tensors.c = p.layout == RowLayout::slots ? Tensor::contiguous(nullptr, p.out, {p.experts, p.rows, p.n})
                                           : Tensor::contiguous(nullptr, p.out, {p.rows, p.n});
  return reference::grouped_call(p, grouped_weights(task, find), tensors);
}

inline reference::PlainSums plain_sums(const GroupedTask& task, const Maker& maker) {
  return reference::plain_sums(task.problem.a, task.problem.b, maker.numerics, maker.device);
}

/// By which rule outputs of exact numerics are judged.
inline reference::Rule grouped_rule(const GroupedTask& task, Distribution distribution) {
  const GroupedProblem& p = task.problem;
  const bool is_bare = p.activation && !p.bias && !p.row_weights;
  if (distribution == Distribution::contest && !is_bare) {
    return reference::Rule::general;
  }
  return dual_gemm_rule({.out = p.out, .activation = p.activation.value_or(Activation{})}, distribution);
}

}  // namespace thresher::arena
