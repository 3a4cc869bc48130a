#pragma once
/// A contestant in the words of the public API.
#include "arena/operation/contestant_spec.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::arena {

/// The options that a contestant asks `plan` for.
[[nodiscard]] DualGemmOptions plan_options(const ContestantSpec& spec);

}  // namespace thresher::arena
