#pragma once
/// A card of the planner's table that is not in this machine, for tournaments that run no contestant.
#include <memory>

#include "arena/rig/rig.hpp"
#include "core/device_spec.hpp"

namespace thresher::arena {

/// `card` outlives it. Its memory and its clock are the host's and stay unused; it has no ceilings.
[[nodiscard]] std::unique_ptr<Rig> card_rig(const DeviceSpec& card);

}  // namespace thresher::arena
