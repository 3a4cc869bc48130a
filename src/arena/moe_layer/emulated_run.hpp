#pragma once
/// A layer's whole chain of launches on the emulator.
#include <memory>

#include "arena/emulation/emulation.hpp"
#include "arena/moe_layer/task.hpp"

namespace thresher::arena {

/// The layer's calls one behind the other, each on what the one before it left, on random operands of the task. Throws
/// Error(unsupported) as PlannedRun does.
[[nodiscard]] std::unique_ptr<EmulatedRun> emulated_layer(const LayerTask& task, LayerCalls calls);

}  // namespace thresher::arena
