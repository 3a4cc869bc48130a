#pragma once
/// Gate `race-free`: the contestant's GPU kernels run in the emulator (arena/emulation), at small shapes with ragged
/// edges, on several schedules.
#include <memory>

#include "arena/gates/match.hpp"

namespace thresher::arena {

/// The gate caches each kernel's result: a tournament judges each kernel once.
[[nodiscard]] std::unique_ptr<Gate> make_race_free_gate();

}  // namespace thresher::arena
