#pragma once
/// Quick looks at outputs of the dual GEMM.
#include <memory>

#include "arena/operation/inspector.hpp"
#include "arena/operation/operation.hpp"

namespace thresher::arena {

/// By the rule that the judge of `maker` goes by (judge.hpp). `inputs` are some of the distribution: what a plain
/// computation errs on a part of them, and half as much again, is what it may err anywhere. Whole outputs of numerics
/// `fast` are compared tile by tile, since what is trusted need not fold its operands.
[[nodiscard]] std::unique_ptr<Inspector> make_dual_gemm_inspector(const DualGemmProblem& problem,
                                                                  Distribution distribution,
                                                                  const std::vector<HostTensor>& inputs,
                                                                  const Maker& maker, std::uint64_t seed);

}  // namespace thresher::arena
