#pragma once
/// The plain product in the words of grouped products.
#include "thresher/gemm.hpp"

namespace thresher::ops {

/// One expert that owns every row; its calls have no offsets (Bounds::none).
[[nodiscard]] GroupedProblem one_expert(const GemmProblem& problem);

}  // namespace thresher::ops
