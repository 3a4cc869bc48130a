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

/// Throws Error(unsupported) naming a suite whose operation has no Operation::tuned_choices.
void check_tuned(std::span<const Suite> suites);

/// Enters the run's winners into `tuning` and returns one sentence for each change. A winner is recorded only where the
/// default was timed in the same run and is slower beyond both intervals. Where the default was timed and is not
/// slower, the stored choice is removed. Contestants that failed a gate are ignored.
std::vector<std::string> enter_winners(const RunRecord& run, std::span<const Suite> suites, const std::string& device,
                                       const DeviceSpec& spec, ops::Tuning& tuning);

}  // namespace thresher::arena
