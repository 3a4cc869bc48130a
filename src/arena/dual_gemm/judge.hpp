#pragma once
/// Judges outputs of the dual GEMM against the float64 definition, and names the commonest mistakes.
#include <cstdint>
#include <memory>
#include <vector>

#include "arena/operation/operation.hpp"
#include "reference/tolerance.hpp"

namespace thresher::arena {

/// Outputs whose definition costs more multiplications than this are judged on a random part of every tile.
inline constexpr double whole_output_products = 0.8e9;

/// By which rule outputs of exact numerics are judged.
[[nodiscard]] reference::Rule dual_gemm_rule(const DualGemmProblem& problem, Distribution distribution);

/// `inputs` are "a", "b1", "b2"; the judge keeps what it needs of them. Numerics `fast` of NVFP4 weights are judged
/// against the definition on the folded operands (reference/fold.hpp) with the general rule, and bit for bit where
/// neither folding nor sums of 14 bits lose anything; the distance from the exact operands is evidence.
[[nodiscard]] std::unique_ptr<Judge> make_dual_gemm_judge(const DualGemmProblem& problem, Distribution distribution,
                                                          const std::vector<HostTensor>& inputs, const Maker& maker,
                                                          std::uint64_t seed);

}  // namespace thresher::arena
