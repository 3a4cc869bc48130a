#pragma once
/// Contestants of layers in the words of the planner.
///
/// `plan` chooses a strategy for each product, so a contestant is called by that of gate and up, `planned` where it is
/// left to `plan`. Its knobs are those of gate and up; `down` names the strategy of the other product, which is
/// `plan`'s to choose where it is left out, and "down.stages" is the knob `stages` of that. `threads` is of both.
#include "arena/operation/contestant_spec.hpp"
#include "arena/operation/operation.hpp"
#include "thresher/gated_mlp.hpp"
#include "thresher/moe_layer.hpp"

namespace thresher::arena {

/// The strategy of a product that is left to `plan`.
inline constexpr const char* planned_layer = "planned";

/// Throws Error(invalid_argument) for numerics other than exact, for which there is no judge.
[[nodiscard]] MoeOptions layer_options(const PlanRequest& request);
[[nodiscard]] MoeOptions layer_options(const ContestantSpec& spec);

/// The same of the products of a gated MLP, whose options are alike.
[[nodiscard]] GatedMlpOptions gated_mlp_options(const MoeOptions& options);

/// The request that `layer_options` reads back.
[[nodiscard]] PlanRequest request_of(const MoeOptions& options);

}  // namespace thresher::arena
