#pragma once
/// A contestant's knobs in the words of the public API and of the planner.
#include "arena/operation/contestant_spec.hpp"
#include "planner/dual_gemm_config.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::arena {

/// The planner's words for a contestant: its strategy with its knobs ("tile" and "numerics" are written without their
/// name). Throws Error(invalid_argument) for a knob that the planner does not know.
[[nodiscard]] planner::DualGemmConfig planner_config(const ContestantSpec& spec);

/// What a contestant asks `plan` for on a GPU. Knobs that name numerics alone leave the rest to the planner. Throws as
/// planner_config.
[[nodiscard]] DualGemmOptions plan_options(const ContestantSpec& spec);

}  // namespace thresher::arena
