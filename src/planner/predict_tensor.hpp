#pragma once
/// How long a kernel whose sums lie in tensor memory takes: the longest of its products, its loads from L2 into shared
/// memory and its reads of DRAM, and around it launch, prologue and the end of the last tile.
#include "planner/predict.hpp"

namespace thresher::planner {

/// With the constants of `device.tensor` as they are; without an interval.
[[nodiscard]] Prediction predict_tensor(const strategies::TensorKernel& kernel, const DeviceSpec& device,
                                        const Calibration& calibration, Clocks clocks);

}  // namespace thresher::planner
