#pragma once
/// The panel ranks pitches before anything runs, by the planner's evidence and not by the pitches' own words.
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "arena/operation/problem.hpp"
#include "arena/pitches/pitch.hpp"
#include "planner/predict.hpp"

namespace thresher::arena {

/// The original contest's weights.
struct PanelWeights {
  double speedup = 0.40;
  double feasibility = 0.25;
  double risk = 0.20;
  double evidence = 0.15;
};

/// The score of one pitch. Scores lie between 0 and 1.
struct PitchScore {
  std::string pitch;  ///< its title
  double claimed_low = 1;
  double claimed_high = 1;
  /// Predicted baseline over predicted contestant, geometric mean over the problems; no prediction when empty.
  std::optional<double> predicted_speedup;
  /// With the planner's own error on both sides.
  double predicted_low = 0;
  double predicted_high = 0;
  /// Share of the baseline's time that the pitch can touch, when it names a part.
  std::optional<double> touched_share;
  /// The upper limit of the gain, if that part cost nothing.
  std::optional<double> max_possible;
  std::size_t feasible_problems = 0;
  std::size_t problems = 0;
  double speedup_score = 0;
  double feasibility_score = 0;
  double risk_score = 0;
  double evidence_score = 0;
  double score = 0;
  bool withdrawn = false;                       ///< below its own abort threshold, or nowhere feasible
  std::string reason;                           ///< one sentence
  std::vector<std::string> infeasible_reasons;  ///< for the first infeasible problem
};

/// The share of the prediction's parts that a pitch's `touches` names ("epilogue", "launch", "fill", "main loop",
/// "exchange", "passes", "everything"). Empty when it names none that the planner knows.
[[nodiscard]] std::optional<double> touched_share(const std::string& touches, const planner::TimeParts& parts);

[[nodiscard]] PitchScore consider(const Pitch& pitch, std::span<const Problem> problems, const DeviceSpec& device,
                                  const planner::Calibration& calibration = {}, const PanelWeights& weights = {});

/// JSON object for machines, the ledger and the report.
[[nodiscard]] std::string score_json(const PitchScore& opinion);

/// The best first; withdrawn pitches last.
[[nodiscard]] std::vector<PitchScore> rank_pitches(std::vector<PitchScore> opinions);

/// The accuracy of claims or predictions against measurements.
struct Forecast {
  double low = 1;  ///< the interval
  double high = 1;
  double measured = 1;
};

struct ForecastQuality {
  std::size_t count = 0;
  double sign_right = 0;  ///< share of forecasts on the right side of 1 (within 2 % counts as neither, and as right)
  double mean_log_error = 0;  ///< mean |log(middle / measured)|, the middle being the geometric mean of the ends
  double covered = 0;         ///< share of measurements inside their interval
};

[[nodiscard]] ForecastQuality quality_of(std::span<const Forecast> forecasts);

}  // namespace thresher::arena
