#include "arena/report/run_json.hpp"

#include <nlohmann/json.hpp>

#include "arena/predictions/predictions.hpp"
#include "arena/results/evidence_json.hpp"
#include "arena/results/record_json.hpp"
#include "arena/results/recorded_json.hpp"

namespace thresher::arena {
namespace {

using Json = nlohmann::ordered_json;

Json parsed(const std::string& text) { return text.empty() ? Json() : parse_recorded<Json>(text); }

Json to_json_value(const Estimate& estimate) {
  return {{"value", estimate.value}, {"low", estimate.low}, {"high", estimate.high}};
}

Json to_json_value(const GateResult& gate) {
  return {{"gate", name(gate.kind)},
          {"outcome", name(gate.outcome)},
          {"sentence", gate.sentence},
          {"evidence", parsed(to_json(gate.evidence))}};
}

Json to_json_value(const Measurement& measurement) {
  Json json{{"problem", measurement.problem}, {"mode", name(measurement.mode)}};
  if (measurement.rounds == 0) {
    json["not_measured"] = measurement.not_measured;
    return json;
  }
  json["rounds"] = measurement.rounds;
  json["baseline_us"] = to_json_value(measurement.baseline_us);
  json["contestant_us"] = to_json_value(measurement.contestant_us);
  json["speedup"] = to_json_value(measurement.speedup);
  json["baseline_against_itself"] = to_json_value(measurement.self);
  json["comparison"] = measurement.comparison;
  json["floor_us"] = measurement.floor_us;
  json["sustained_us"] = measurement.sustained_us;
  json["samples"] = parsed(measurement.samples);
  return json;
}

Json to_json_value(const Context& context) {
  return {{"source_hash", context.source_hash},
          {"toolchain", parsed(context.toolchain)},
          {"machine", parsed(context.machine)}};
}

Json to_json_value(const Entry& entry) {
  Json json{{"ordinal", entry.ordinal},
            {"suite", entry.suite},
            {"contestant", entry.contestant},
            {"baseline", entry.baseline},
            {"is_baseline", entry.is_baseline()},
            {"verdict", plain_verdict(entry)},
            {"verdict_text", verdict_text(entry)},
            {"sentence", entry.sentence},
            {"started", entry.started},
            {"ended", entry.ended},
            {"clocks", parsed(to_json(entry.clocks))},
            {"pitch", parsed(entry.pitch)},
            {"gates", Json::array()},
            {"measurements", Json::array()},
            {"context", to_json_value(entry.context)}};
  for (const GateResult& gate : entry.gates) {
    json["gates"].push_back(to_json_value(gate));
  }
  for (const Measurement& measurement : entry.measurements) {
    json["measurements"].push_back(to_json_value(measurement));
  }
  return json;
}

Json to_json_value(const PredictionRecord& prediction) {
  return {{"ordinal", prediction.ordinal},
          {"suite", prediction.suite},
          {"contestant", prediction.contestant},
          {"problem", prediction.problem},
          {"predicted_us", prediction.predicted_us ? Json(*prediction.predicted_us) : Json(nullptr)},
          {"why", prediction.why},
          {"planner", parsed(prediction.planner)},
          {"panel", parsed(prediction.panel)},
          {"frozen", prediction.frozen},
          {"hash", prediction.hash}};
}

nlohmann::json to_json_value(const PredictionAccuracy& accuracy) {
  return {{"times", accuracy.times},
          {"median_error", accuracy.median_error},
          {"shapes", accuracy.shapes},
          {"best_within_10_percent", accuracy.best_within}};
}

nlohmann::json to_json_value(const ForecastQuality& quality) {
  return {{"count", quality.count},
          {"sign_right", quality.sign_right},
          {"mean_log_error", quality.mean_log_error},
          {"covered", quality.covered}};
}

/// Everything but the times.
nlohmann::json to_json_value(const PredictionQuality& quality) {
  nlohmann::json json = to_json_value(quality.all);
  json["unseen"] = to_json_value(quality.unseen);
  json["suites"] = nlohmann::json::object();
  for (const auto& [suite, accuracy] : quality.suites) {
    json["suites"][suite] = to_json_value(accuracy);
  }
  json["panel"] = to_json_value(quality.panel);
  json["claims"] = to_json_value(quality.claims);
  return json;
}

}  // namespace

std::string to_json(const RunRecord& run, int indent) {
  Json json{{"run", run.id},
            {"started", run.started},
            {"ended", run.ended},
            {"device", run.device},
            {"seed", run.seed},
            {"arguments", parsed(run.arguments)},
            {"context", to_json_value(run.context)},
            {"prediction_quality", Json(to_json_value(prediction_quality({&run, 1})))},
            {"predictions", Json::array()},
            {"entries", Json::array()}};
  for (const PredictionRecord& prediction : run.predictions) {
    json["predictions"].push_back(to_json_value(prediction));
  }
  for (const Entry& entry : run.entries) {
    json["entries"].push_back(to_json_value(entry));
  }
  return json.dump(indent, ' ', true, Json::error_handler_t::replace);  // ASCII, for any reader
}

}  // namespace thresher::arena
