#pragma once
/// Grouped kernels of one group that owns all rows: what makes dense products of them.
///
/// Such a call comes without offsets: their place in CallTensors has rank 0, and the kernels are given null in place of
/// bounds and of the status, which has nothing to say.
#include "strategies/planned_call.hpp"
#include "thresher/tensor.hpp"

namespace thresher::strategies::grouped_gemm {

/// The same call, of packed rows, without what belongs to offsets: nothing reads them, and no status is written.
[[nodiscard]] PlannedCall without_offsets(PlannedCall call);

/// A matrix [n,k] as the stack [1,n,k] of one expert's, with the same scales; rank 0 stays rank 0, and a vector [n]
/// becomes [1,n].
[[nodiscard]] Tensor stack_of_one(const Tensor& matrix);

}  // namespace thresher::strategies::grouped_gemm
