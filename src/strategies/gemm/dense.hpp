#pragma once
/// Grouped kernels of one group that owns all rows: what makes dense products of them.
///
/// Such a call comes without offsets: their place in CallTensors has rank 0, and the kernels are given null in place of
/// bounds and of the status, which has nothing to say.
#include "strategies/planned_call.hpp"

namespace thresher::strategies::gemm {

/// The same call, of packed rows, without what belongs to offsets: nothing reads them, and no status is written.
[[nodiscard]] PlannedCall without_offsets(PlannedCall call);

}  // namespace thresher::strategies::gemm
