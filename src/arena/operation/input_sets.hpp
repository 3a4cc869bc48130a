#pragma once
/// The input sets that timed calls rotate over, so that none finds its data in a cache.
#include <cstdint>
#include <vector>

#include "arena/data/device_set.hpp"
#include "arena/data/distribution.hpp"
#include "arena/operation/problem.hpp"
#include "arena/rig/rig.hpp"
#include "arena/timing/rotation.hpp"

namespace thresher::arena {

struct InputSets {
  Rotation rotation;
  std::vector<DeviceSet> sets;  ///< set 0 and cheap variations of it
};

/// Makes as many sets as cold calls need, or as the memory holds, and at most `most`.
[[nodiscard]] InputSets make_input_sets(Rig& rig, const Problem& problem, Distribution distribution, std::uint64_t seed,
                                        std::size_t most = max_sets);

}  // namespace thresher::arena
