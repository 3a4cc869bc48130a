#pragma once
/// The time of a kernel whose accumulators are in tensor memory. It is the longest of its products, its loads from L2
/// into shared memory and its reads of DRAM. Launch, prologue and the epilogue of the last tile are added.
#include "planner/predict.hpp"

namespace thresher::planner {

/// With the constants of `device.tensor` as they are; without an interval.
[[nodiscard]] Prediction predict_tensor(const strategies::TensorKernel& kernel, const DeviceSpec& device,
                                        const Calibration& calibration, Clocks clocks);

}  // namespace thresher::planner
