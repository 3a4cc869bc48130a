#include "arena/predictions/predictions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "arena/ledger/sha256.hpp"
#include "arena/predictions/calibration_file.hpp"
#include "arena/predictions/calibration_samples.hpp"
#include "ops/forecast.hpp"
#include "planner/calibrate.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

constexpr std::array predicted_modes{"cold burst", "warm burst"};
/// As fast as the best, for a choice.
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

std::string panel_json(const Forecaster& forecaster, const Suite& suite, const Pitch* pitch) {
  if (pitch == nullptr || forecaster.device == nullptr) {
    return "";
  }
  try {
    return opinion_json(consider(*pitch, suite.problems, *forecaster.device, forecaster.calibration));
  } catch (const Error& error) {
    return nlohmann::json{{"reason", error.what()}}.dump();
  }
}

void predict(const Forecaster& forecaster, const ContestantSpec& contestant, const Problem& problem,
             PredictionRecord& record) {
  if (forecaster.device == nullptr) {
    record.why = "the planner has no table for this machine";
    return;
  }
  try {
    const planner::Prediction prediction = forecast(problem, contestant, *forecaster.device, forecaster.calibration);
    record.predicted_us = prediction.us();
    record.why = prediction.why;
  } catch (const Error& error) {
    record.why = error.what();
  }
}

/// The geometric mean of an entry's speed-ups in the mode that was predicted, from the evidence of its verdict.
std::optional<Estimate> measured_speedup(const Entry& entry) {
  for (const GateResult& gate : entry.gates) {
    if (gate.gate == "verdict") {
      const auto evidence = nlohmann::json::parse(gate.evidence);
      for (const char* name : predicted_modes) {
        if (evidence.contains(name)) {
          const auto& mode = evidence[name];
          return Estimate{mode["geomean_speedup"], mode["low"], mode["high"]};
        }
      }
    }
  }
  return std::nullopt;
}

/// What the panel wrote down of an entry's pitch; null when it did not, or could not predict.
nlohmann::json opinion_of(const RunRecord& run, const Entry& entry) {
  for (const PredictionRecord& record : run.predictions) {
    if (record.ordinal == entry.ordinal && !record.panel.empty()) {
      const auto opinion = nlohmann::json::parse(record.panel);
      return opinion.contains("predicted") && !opinion["predicted"].is_null() ? opinion : nlohmann::json();
    }
  }
  return {};
}

struct Forecasts {
  std::vector<Forecast> panel;
  std::vector<Forecast> claims;
};

void add_forecasts(const RunRecord& run, const Entry& entry, Forecasts& out) {
  const auto measured = measured_speedup(entry);
  const nlohmann::json opinion = opinion_of(run, entry);
  if (measured && !opinion.is_null()) {
    out.panel.push_back({opinion["predicted_interval"][0], opinion["predicted_interval"][1], measured->value});
    out.claims.push_back({opinion["claimed"][0], opinion["claimed"][1], measured->value});
  }
}

/// What was predicted of a problem, measured; null when it was not.
const Measurement* measured(const Entry& entry, const std::string& problem) {
  for (const char* mode : predicted_modes) {
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
      times.push_back({!is_calibrated_on(record.problem), run.id, entry.suite, entry.contestant, record.problem,
                       *record.predicted_us, measurement->contestant_us.value});
    }
  }
}

using TimesOfAShape = std::vector<const PredictedTime*>;

bool is_best_within(const TimesOfAShape& times) {
  const auto by = [](double PredictedTime::*us) {
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
    shapes[fmt::format("{} {} {}", time->run, time->suite, time->problem)].push_back(time);
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

nlohmann::json to_json_value(const PredictionAccuracy& accuracy) {
  return {{"times", accuracy.times},
          {"median_error", accuracy.median_error},
          {"shapes", accuracy.shapes},
          {"best_within_10_percent", accuracy.best_within}};
}

std::string accuracy_line(const std::string& whose, const PredictionAccuracy& accuracy) {
  return fmt::format(
      "{}: median error {:.1f} % over {} times; the predicted best is within 10 % of the measured best on {} of {} "
      "shapes\n",
      whose, 100 * accuracy.median_error, accuracy.times, accuracy.best_within, accuracy.shapes);
}

nlohmann::json to_json_value(const ForecastQuality& quality) {
  return {{"count", quality.count},
          {"sign_right", quality.sign_right},
          {"mean_log_error", quality.mean_log_error},
          {"covered", quality.covered}};
}

std::string forecast_line(const char* whose, const ForecastQuality& quality) {
  return fmt::format(
      "{}: right about faster or slower in {:.0f} %, |log ratio| {:.2f} on average, interval holds in "
      "{:.0f} % ({} pitch{})\n",
      whose, 100 * quality.sign_right, quality.mean_log_error, 100 * quality.covered, quality.count,
      quality.count == 1 ? "" : "es");
}

}  // namespace

Forecaster forecaster_for(const std::string& machine_json) {
  Forecaster forecaster;
  const auto machine = nlohmann::json::parse(machine_json);
  if (machine.contains("gpu")) {
    forecaster.device = find_device_spec(machine["gpu"].get<std::string>());
  }
  if (forecaster.device != nullptr) {
    const LoadedCalibration loaded = load_calibration("", forecaster.device->name);
    forecaster.calibration = loaded.calibration;
    forecaster.calibration_source = loaded.source;
  }
  return forecaster;
}

std::vector<PredictionRecord> predict_times(const Forecaster& forecaster, const Suite& suite,
                                            const ContestantSpec& contestant, const Pitch* pitch,
                                            std::int64_t ordinal) {
  std::vector<PredictionRecord> records;
  if (!suite.timed) {
    return records;
  }
  const std::string panel = panel_json(forecaster, suite, pitch);
  for (const Problem& problem : suite.problems) {
    PredictionRecord& record = records.emplace_back();
    record.ordinal = ordinal;
    record.suite = suite.name;
    record.contestant = label(contestant);
    record.problem = label(problem);
    record.planner = planner_json(forecaster);
    record.panel = panel;
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

std::string prediction_quality_json(const PredictionQuality& quality) {
  nlohmann::json json = to_json_value(quality.all);
  json["unseen"] = to_json_value(quality.unseen);
  json["suites"] = nlohmann::json::object();
  for (const auto& [suite, accuracy] : quality.suites) {
    json["suites"][suite] = to_json_value(accuracy);
  }
  json["panel"] = to_json_value(quality.panel);
  json["claims"] = to_json_value(quality.claims);
  return json.dump();
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
    if (entry.pitch.empty()) {
      continue;
    }
    const auto pitch = nlohmann::json::parse(entry.pitch);
    const auto measured = measured_speedup(entry);
    const nlohmann::json opinion = opinion_of(run, entry);
    const auto interval = [](double value, double low, double high) {
      return fmt::format("{:.3g}x [{:.3g}, {:.3g}]", value, low, high);
    };
    text += fmt::format(
        "  {:>13}  {:>21}  {:>21}  {}\n",
        fmt::format("{:.3g}-{:.3g}x", pitch["claim"]["speedup_low"].get<double>(),
                    pitch["claim"]["speedup_high"].get<double>()),
        opinion.is_null()
            ? "-"
            : interval(opinion["predicted"], opinion["predicted_interval"][0], opinion["predicted_interval"][1]),
        measured ? interval(measured->value, measured->low, measured->high) : "-", pitch["title"].get<std::string>());
  }
  return text.empty()
             ? text
             : fmt::format("  {:>13}  {:>21}  {:>21}  {}\n", "claimed", "predicted", "measured", "pitch") + text;
}

}  // namespace thresher::arena
