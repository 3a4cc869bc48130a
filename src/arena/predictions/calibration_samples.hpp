#pragma once
/// Times of known contestants on a GPU, for fitting the planner to it.
#include <functional>
#include <string>
#include <vector>

#include "arena/rig/rig.hpp"
#include "planner/calibrate.hpp"

namespace thresher::arena {

/// The planner's table of the rig's GPU. Throws Error(unsupported) when it is no GPU, or one without a table.
[[nodiscard]] const DeviceSpec& calibrated_device(Rig& rig);

/// What every operation names (Operation::calibration_cases), on shapes that no built-in suite holds, so that the
/// suites stay a test of the fit. What the device cannot run is left out. `each` is told what is measured next, and of
/// how many. Throws as calibrated_device.
[[nodiscard]] std::vector<planner::CalibrationSample> measure_calibration(
    Rig& rig, double seconds_each, const std::function<void(const std::string&, std::size_t, std::size_t)>& each);

/// Whether measure_calibration times contestants on the problem with this label.
[[nodiscard]] bool is_calibrated_on(const std::string& problem);

/// How well a fit predicts what it has not seen: the error over every second sample of a fit to the others.
[[nodiscard]] planner::PredictionError unseen_error(const std::vector<planner::CalibrationSample>& samples,
                                                    const DeviceSpec& device);

}  // namespace thresher::arena
