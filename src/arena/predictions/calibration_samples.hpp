#pragma once
/// Times of known contestants on a GPU, for fitting the planner to it.
#include <functional>
#include <string>
#include <vector>

#include "arena/rig/rig.hpp"
#include "planner/calibrate.hpp"

namespace thresher::arena {

/// The planner's table of the rig's GPU. Throws Error(unsupported) for a rig without a GPU, or a GPU without a table.
[[nodiscard]] const DeviceSpec& calibrated_device(Rig& rig);

/// Times the cases of every operation (Operation::calibration_cases). Their shapes are in no built-in suite, so that
/// the suites stay a test of the fit. Skips the cases that the device cannot run. Calls `each` with the next case's
/// name and the counts. Throws as calibrated_device.
[[nodiscard]] std::vector<planner::CalibrationSample> measure_calibration(
    Rig& rig, double seconds_each, const std::function<void(const std::string&, std::size_t, std::size_t)>& each);

/// Whether measure_calibration times contestants on the problem with this label.
[[nodiscard]] bool is_calibrated_on(const std::string& problem);

/// How well a fit generalizes: the error on every second sample, of a fit to the others.
[[nodiscard]] planner::PredictionError unseen_error(const std::vector<planner::CalibrationSample>& samples,
                                                    const DeviceSpec& device);

}  // namespace thresher::arena
