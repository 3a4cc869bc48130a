#pragma once
/// The time of a block's epilogue, from accumulators to outputs.
#include "core/device_spec.hpp"
#include "planner/calibration.hpp"
#include "strategies/work_model.hpp"

namespace thresher::planner {

/// Clocks of one multiprocessor.
[[nodiscard]] double epilogue_clocks(const strategies::EpilogueWork& work, const DeviceSpec& device,
                                     const Calibration& calibration) noexcept;

}  // namespace thresher::planner
