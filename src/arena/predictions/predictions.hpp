#pragma once
/// Predictions about contestants before they run, and their accuracy afterwards.
#include <map>
#include <span>
#include <string>
#include <vector>

#include "arena/panel/panel.hpp"
#include "arena/results/record.hpp"
#include "arena/rig/rig.hpp"
#include "arena/suites/suite.hpp"
#include "planner/predict.hpp"

namespace thresher::arena {

/// The source of predictions. Without a device table nothing is predicted, and the record says so.
struct Forecaster {
  const DeviceSpec* device = nullptr;
  planner::Calibration calibration{};
  std::string calibration_source = "built in";
};

/// The planner's table for the machine, if it has one, with the calibration of load_calibration("", device).
[[nodiscard]] Forecaster forecaster_for(const Machine& machine);
/// The same for an entry of the table; null: none.
[[nodiscard]] Forecaster forecaster_for(const DeviceSpec* device);

/// One record for each problem of the suite; none for a suite that is not timed. `pitch` may be null.
[[nodiscard]] std::vector<PredictionRecord> predict_times(const Forecaster& forecaster, const Suite& suite,
                                                          const ContestantSpec& contestant, const Pitch* pitch,
                                                          std::int64_t ordinal);

/// A prediction beside its measurement, in the predicted mode: cold burst, or warm burst where a suite is timed warm.
struct PredictedTime {
  bool is_unseen = false;  ///< on a problem that `thresher calibrate` does not time
  std::int64_t run = 0;
  std::string suite;
  std::string contestant;
  std::string problem;
  double predicted_us = 0;
  double measured_us = 0;
  int shard = 0;  ///< of a merged run, whose machine measured it
  [[nodiscard]] double error() const noexcept { return predicted_us / measured_us - 1; }
};

/// The accuracy of some of the predictions.
struct PredictionAccuracy {
  std::size_t times = 0;
  double median_error = 0;      ///< of |predicted / measured − 1|; 0 without times
  std::size_t shapes = 0;       ///< problems of a suite with at least two contestants on one machine
  std::size_t best_within = 0;  ///< problems whose predicted best needs at most 1.1 times the measured best's time
};

struct PredictionQuality {
  std::vector<PredictedTime> times;
  PredictionAccuracy all;
  std::map<std::string, PredictionAccuracy> suites;
  PredictionAccuracy unseen;  ///< over the problems that `thresher calibrate` does not time
  ForecastQuality panel;      ///< over the panel's speed-ups
  ForecastQuality claims;     ///< over the pitches' own claims, for the same pitches
};

[[nodiscard]] PredictionQuality prediction_quality(std::span<const RunRecord> runs);

/// Lines for people, each with a line end; empty without a prediction that was measured.
[[nodiscard]] std::string prediction_quality_text(const PredictionQuality& quality);

/// Claim, prediction and measurement of every pitch side by side, a line each under a heading; empty without pitches.
[[nodiscard]] std::string claims_text(const RunRecord& run);

}  // namespace thresher::arena
