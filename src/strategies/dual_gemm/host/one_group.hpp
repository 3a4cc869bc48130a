#pragma once
/// The dual GEMM as a grouped one of one group, which owns all rows, and its tensors where a grouped call has them.
#include <cstddef>

#include "strategies/planned_call.hpp"
#include "thresher/dual_gemm.hpp"
#include "thresher/grouped_gemm.hpp"

namespace thresher::strategies::dual_gemm {

[[nodiscard]] GroupedProblem one_group(const DualGemmProblem& problem);
/// Of a problem that one_group might have given.
[[nodiscard]] DualGemmProblem without_groups(const GroupedProblem& problem);

/// Which of the dual GEMM's tensors is the one at `grouped`. There is one.
[[nodiscard]] std::size_t own_place(std::size_t grouped);

/// The launch of a grouped call, which reads no offsets, with the dual GEMM's tensors in place of a grouped product's.
void take_own_tensors(KernelLaunch& launch);

}  // namespace thresher::strategies::dual_gemm
