#pragma once
/// Checks a computed attention: the tolerance rule, applied to every element.
#include <cstdint>
#include <string>

#include "reference/attention.hpp"

namespace thresher::reference {

/// The outcome, with the worst element as its evidence.
struct [[nodiscard]] AttentionJudgement {
  bool passed = true;
  double worst_excess = 0.0;  ///< maximum error / allowed error of o and lse; above 1 is a failure
  double max_error = 0.0;     ///< maximum |o − definition| of the finite elements
  double plain_error = 0.0;   ///< the same for the plain low-precision computation
  std::string evidence;       ///< one sentence about the worst element
};

/// Compares o and (where data is not null) lse of `tensors` with the definition. Every element must satisfy
/// |o − definition| ≤ 2·(maximum error of the plain low-precision computation) + 1 ulp of the output;
/// |lse − definition| ≤ 2·(the plain one's maximum error) + 2⁻²⁰·max(1, |lse|).
/// NaN must be where the definition has NaN, and Inf where it has Inf; nothing else may be NaN or Inf.
AttentionJudgement judge_attention(const AttentionProblem& problem, const AttentionTensors& tensors,
                                   const AttentionResult& definition, const AttentionResult& plain);

/// The same, and computes definition and plain result itself (on all cores).
AttentionJudgement judge_attention(const AttentionProblem& problem, const AttentionTensors& tensors);

}  // namespace thresher::reference
