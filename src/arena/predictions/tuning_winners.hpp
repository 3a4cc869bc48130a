#pragma once
/// From a tournament to the tuning cache.
#include <span>
#include <string>
#include <vector>

#include "arena/results/record.hpp"
#include "arena/suites/suite.hpp"
#include "core/device_spec.hpp"
#include "ops/tuning.hpp"

namespace thresher::arena {

/// Throws Error(unsupported) that names a suite whose operation keeps no choices (Operation::tuned_choices).
void check_tuned(std::span<const Suite> suites);

/// Enters the run's winners into `tuning` and says so, a sentence each. A winner is recorded only where the default
/// choice was timed in the same run and is slower beyond both intervals; where the default was timed and is not, what
/// was known of the problem is forgotten. Contestants that failed a gate count for nothing.
std::vector<std::string> enter_winners(const RunRecord& run, std::span<const Suite> suites, const std::string& device,
                                       const DeviceSpec& spec, ops::Tuning& tuning);

}  // namespace thresher::arena
