#pragma once
/// Fits the prediction to measurements, and reports its error.
#include <span>
#include <string>
#include <vector>

#include "planner/predict.hpp"

namespace thresher::planner {

/// A measured call.
struct CalibrationSample {
  std::string what{};  ///< for people: "packed on 320x6144x4096 fp16*nvfp4->fp16"
  strategies::WorkModel work{};
  double measured_us = 0;  ///< > 0
  Clocks clocks = Clocks::burst;
};

[[nodiscard]] double predicted_us(const CalibrationSample& sample, const DeviceSpec& device,
                                  const Calibration& calibration);
/// Its name with the clock: "…, sustained".
[[nodiscard]] std::string text(const CalibrationSample& sample);

/// The distance of predictions from measurements: |predicted / measured − 1|.
struct PredictionError {
  double median = 0;
  double worst = 0;
  std::size_t samples = 0;
};

[[nodiscard]] PredictionError prediction_error(std::span<const CalibrationSample> samples, const DeviceSpec& device,
                                               const Calibration& calibration);

/// The parameters near `start` whose predictions are nearest to the samples. The distance is the squared logarithm of
/// the ratio, plus a small price for a change from `start`. So a parameter that no sample depends on stays.
/// Deterministic. Throws Error(invalid_argument) when there are fewer than 4 samples or one was not measured.
[[nodiscard]] Calibration fit(std::span<const CalibrationSample> samples, const DeviceSpec& device,
                              const Calibration& start = {});

/// TOML, one line per parameter. `read_calibration` accepts only the complete file of that device. It throws
/// Error(invalid_argument) naming an unknown, impossible, duplicate or missing entry.
[[nodiscard]] std::string write_calibration(const Calibration& calibration, std::string_view device);
[[nodiscard]] Calibration read_calibration(std::string_view text, std::string_view device);

}  // namespace thresher::planner
