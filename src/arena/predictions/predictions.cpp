#include "arena/predictions/predictions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "arena/ledger/sha256.hpp"
#include "arena/operation/operation.hpp"
#include "arena/predictions/calibration_file.hpp"
#include "arena/predictions/calibration_samples.hpp"
#include "core/printable.hpp"
#include "planner/calibrate.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

/// A choice within this factor counts as the best.
constexpr double best_factor = 1.1;

std::string planner_json(const Forecaster& forecaster) {
  if (forecaster.device == nullptr) {
    return "{}";
  }
  return nlohmann::json{
      {"device", forecaster.device->name},
      {"calibration", forecaster.calibration_source},
      {"calibration_sha256", sha256(planner::write_calibration(forecaster.calibration, forecaster.device->name))}}
      .dump();
}

/// Stores the panel's score in `record`.
void ask_panel(const Forecaster& forecaster, const Suite& suite, const Pitch* pitch, PredictionRecord& record) {
  if (pitch == nullptr || forecaster.device == nullptr) {
    return;
  }
  try {
    const PitchScore opinion = consider(*pitch, suite.problems, *forecaster.device, forecaster.calibration);
    record.panel = score_json(opinion);
    if (opinion.predicted_speedup) {
      record.opinion = {opinion.claimed_low, opinion.claimed_high, *opinion.predicted_speedup, opinion.predicted_low,
                        opinion.predicted_high};
    }
  } catch (const Error& error) {
    record.panel = nlohmann::json{{"reason", error.what()}}.dump();
  }
}

void predict(const Forecaster& forecaster, const ContestantSpec& contestant, const Problem& problem,
             PredictionRecord& record) {
  if (forecaster.device == nullptr) {
    record.why = "the planner has no table for this machine";
    return;
  }
  try {
    const PlannerResult outlook =
        problem.operation().outlook(problem, contestant, *forecaster.device, forecaster.calibration);
    record.why = outlook.infeasible_reasons.empty() ? outlook.prediction.why : outlook.infeasible_reasons.front();
    if (outlook.infeasible_reasons.empty()) {
      record.predicted_us = outlook.prediction.us();
    }
  } catch (const Error& error) {
    record.why = error.what();
  }
}

/// The geometric mean of an entry's speed-ups in the mode that was predicted.
std::optional<Estimate> measured_speedup(const Entry& entry) {
  for (const TimingMode mode : headline_modes) {
    for (const ModeSpeedup& speedup : entry.speedups) {
      if (speedup.mode == mode) {
        return speedup.geomean;
      }
    }
  }
  return std::nullopt;
}

/// The panel's score of an entry's pitch; empty when there is none, or no prediction.
std::optional<PanelRecord> score_pitch(const RunRecord& run, const Entry& entry) {
  for (const PredictionRecord& record : run.predictions) {
    if (record.ordinal == entry.ordinal && record.opinion) {
      return record.opinion;
    }
  }
  return std::nullopt;
}

struct Forecasts {
  std::vector<Forecast> panel;
  std::vector<Forecast> claims;
};

void add_forecasts(const RunRecord& run, const Entry& entry, Forecasts& out) {
  const auto measured = measured_speedup(entry);
  const auto opinion = score_pitch(run, entry);
  if (measured && opinion) {
    out.panel.push_back({opinion->predicted_low, opinion->predicted_high, measured->value});
    out.claims.push_back({opinion->claimed_low, opinion->claimed_high, measured->value});
  }
}

/// The measurement of a predicted problem; null when it was not measured.
const Measurement* measured(const Entry& entry, const std::string& problem) {
  for (const TimingMode mode : headline_modes) {
    for (const Measurement& measurement : entry.measurements) {
      if (measurement.problem == problem && measurement.mode == mode && measurement.rounds > 0) {
        return &measurement;
      }
    }
  }
  return nullptr;
}

void add_times(const RunRecord& run, const Entry& entry, std::vector<PredictedTime>& times) {
  for (const PredictionRecord& record : run.predictions) {
    if (record.ordinal != entry.ordinal || !record.predicted_us) {
      continue;
    }
    if (const Measurement* const measurement = measured(entry, record.problem)) {
      const MergedShard* const shard = run.merge ? run.merge->shard_of(entry.ordinal) : nullptr;
      times.push_back({!is_calibrated_on(record.problem), run.id, entry.suite, entry.contestant, record.problem,
                       *record.predicted_us, measurement->contestant_us.value, shard == nullptr ? 0 : shard->number});
    }
  }
}

using TimesOfAShape = std::vector<const PredictedTime*>;

bool is_best_within(const TimesOfAShape& times) {
  const auto by = [](double PredictedTime::* us) {
    return [us](const PredictedTime* a, const PredictedTime* b) { return a->*us < b->*us; };
  };
  const PredictedTime* chosen = *std::min_element(times.begin(), times.end(), by(&PredictedTime::predicted_us));
  const PredictedTime* best = *std::min_element(times.begin(), times.end(), by(&PredictedTime::measured_us));
  return chosen->measured_us <= best_factor * best->measured_us;
}

PredictionAccuracy accuracy_of(const TimesOfAShape& times) {
  PredictionAccuracy out;
  std::vector<double> errors;
  std::map<std::string, TimesOfAShape> shapes;
  for (const PredictedTime* time : times) {
    errors.push_back(std::abs(time->error()));
    shapes[fmt::format("{} {} {} {}", time->run, time->shard, time->suite, time->problem)].push_back(time);
  }
  out.times = errors.size();
  out.median_error = errors.empty() ? 0 : median(errors);
  for (const auto& [shape, each] : shapes) {
    if (each.size() >= 2) {
      ++out.shapes;
      out.best_within += is_best_within(each) ? 1 : 0;
    }
  }
  return out;
}

void judge_times(PredictionQuality& quality) {
  TimesOfAShape all;
  TimesOfAShape unseen;
  std::map<std::string, TimesOfAShape> suites;
  for (const PredictedTime& time : quality.times) {
    all.push_back(&time);
    suites[time.suite].push_back(&time);
    if (time.is_unseen) {
      unseen.push_back(&time);
    }
  }
  quality.all = accuracy_of(all);
  quality.unseen = accuracy_of(unseen);
  for (const auto& [suite, times] : suites) {
    quality.suites[suite] = accuracy_of(times);
  }
}

std::string accuracy_line(const std::string& whose, const PredictionAccuracy& accuracy) {
  return fmt::format(
      "{}: median error {:.1f} % over {} times; the predicted best is within 10 % of the measured best on {} of {} "
      "shapes\n",
      whose, 100 * accuracy.median_error, accuracy.times, accuracy.best_within, accuracy.shapes);
}

std::string forecast_line(const char* whose, const ForecastQuality& quality) {
  return fmt::format(
      "{}: right about faster or slower in {:.0f} %, |log ratio| {:.2f} on average, interval holds in "
      "{:.0f} % ({} pitch{})\n",
      whose, 100 * quality.sign_right, quality.mean_log_error, 100 * quality.covered, quality.count,
      quality.count == 1 ? "" : "es");
}

}  // namespace

Forecaster forecaster_for(const DeviceSpec* device) {
  Forecaster forecaster{.device = device};
  if (device != nullptr) {
    const LoadedCalibration loaded = load_calibration("", device->name);
    forecaster.calibration = loaded.calibration;
    forecaster.calibration_source = loaded.source;
  }
  return forecaster;
}

Forecaster forecaster_for(const Machine& machine) {
  return forecaster_for(machine.gpu ? find_device_spec(machine.gpu->name) : nullptr);
}

std::vector<PredictionRecord> predict_times(const Forecaster& forecaster, const Suite& suite,
                                            const ContestantSpec& contestant, const Pitch* pitch,
                                            std::int64_t ordinal) {
  std::vector<PredictionRecord> records;
  if (!suite.timed) {
    return records;
  }
  PredictionRecord asked;
  ask_panel(forecaster, suite, pitch, asked);
  for (const Problem& problem : suite.problems) {
    PredictionRecord& record = records.emplace_back(asked);
    record.ordinal = ordinal;
    record.suite = suite.name;
    record.contestant = label(contestant);
    record.problem = label(problem);
    record.planner = planner_json(forecaster);
    record.frozen = utc_now();
    predict(forecaster, contestant, problem, record);
  }
  return records;
}

PredictionQuality prediction_quality(std::span<const RunRecord> runs) {
  PredictionQuality quality;
  Forecasts forecasts;
  for (const RunRecord& run : runs) {
    for (const Entry& entry : run.entries) {
      add_times(run, entry, quality.times);
      add_forecasts(run, entry, forecasts);
    }
  }
  judge_times(quality);
  quality.panel = quality_of(forecasts.panel);
  quality.claims = quality_of(forecasts.claims);
  return quality;
}

std::string prediction_quality_text(const PredictionQuality& quality) {
  std::string text;
  if (!quality.times.empty()) {
    text += accuracy_line("predictions", quality.all);
    text += accuracy_line("on problems that `thresher calibrate` does not time", quality.unseen);
    for (const auto& [suite, accuracy] : quality.suites) {
      text += accuracy_line("  " + suite, accuracy);
    }
  }
  if (quality.panel.count > 0) {
    text += forecast_line("panel", quality.panel) + forecast_line("the pitches' own claims", quality.claims);
  }
  return text;
}

std::string claims_text(const RunRecord& run) {
  std::string text;
  for (const Entry& entry : run.entries) {
    if (!entry.claim) {
      continue;
    }
    const auto measured = measured_speedup(entry);
    const auto opinion = score_pitch(run, entry);
    const auto interval = [](double value, double low, double high) {
      return fmt::format("{:.3g}x [{:.3g}, {:.3g}]", value, low, high);
    };
    text += fmt::format(
        "  {:>13}  {:>21}  {:>21}  {}\n", fmt::format("{:.3g}-{:.3g}x", entry.claim->low, entry.claim->high),
        opinion ? interval(opinion->predicted, opinion->predicted_low, opinion->predicted_high) : "-",
        measured ? interval(measured->value, measured->low, measured->high) : "-", printable(entry.claim->title));
  }
  return text.empty()
             ? text
             : fmt::format("  {:>13}  {:>21}  {:>21}  {}\n", "claimed", "predicted", "measured", "pitch") + text;
}

}  // namespace thresher::arena
