#pragma once
/// Kernels that users bring, as contestants.
#include <functional>
#include <memory>

#include "arena/contestants/contestant.hpp"
#include "arena/contestants/registry.hpp"
#include "arena/pitches/kernel.hpp"
#include "thresher/device.hpp"

namespace thresher::arena::user_kernels {

/// Costs nothing yet: compiled when a gate asks. `device` is where the tournament is held; a GPU's kernel entered
/// elsewhere is compiled and audited, and says why it is not run. `alive` is called before every call.
[[nodiscard]] std::unique_ptr<Contestant> make_contestant(
    const ContestantSpec& spec, const Kernel& kernel, const Device& device, std::function<void()> alive = [] {});

/// The same for a contestant of a tournament, under a name that no strategy of the device has. Throws
/// Error(invalid_argument).
[[nodiscard]] std::unique_ptr<Contestant> bring(const ContestantSpec& spec, const Kernel& kernel, const Device& device,
                                                const Registry& registry);

}  // namespace thresher::arena::user_kernels
