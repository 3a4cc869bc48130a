#pragma once
/// The strategy two_pass: conversion where needed, two products of a library, one pass for the activation.
#include "planner/predict.hpp"

namespace thresher::planner {

[[nodiscard]] Prediction predict_library(const DualGemmProblem& problem, const DeviceSpec& device,
                                         const Calibration& calibration, Clocks clocks);

}  // namespace thresher::planner
