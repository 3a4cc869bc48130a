#include "arena/user_kernels/wire.hpp"

#include <nlohmann/json.hpp>

#include "arena/results/evidence_json.hpp"

namespace thresher::arena::user_kernels {
namespace {

nlohmann::json estimate_json(const Estimate& estimate) { return {estimate.value, estimate.low, estimate.high}; }

Estimate estimate_from(const nlohmann::json& json) { return {json.at(0), json.at(1), json.at(2)}; }

}  // namespace

nlohmann::json to_wire(const GateResult& gate) {
  return {{"gate", name(gate.kind)},
          {"outcome", name(gate.outcome)},
          {"sentence", gate.sentence},
          {"evidence", to_json(gate.evidence)}};
}

GateResult gate_from_wire(const nlohmann::json& json) {
  return {gate_from_name(json.at("gate").get<std::string>()), outcome_from_name(json.at("outcome").get<std::string>()),
          json.at("sentence"), RecordedEvidence{json.at("evidence")}};
}

nlohmann::json to_wire(const Measurement& measurement) {
  return {{"problem", measurement.problem},
          {"mode", name(measurement.mode)},
          {"not_measured", measurement.not_measured},
          {"rounds", measurement.rounds},
          {"baseline_us", estimate_json(measurement.baseline_us)},
          {"contestant_us", estimate_json(measurement.contestant_us)},
          {"speedup", estimate_json(measurement.speedup)},
          {"self", estimate_json(measurement.self)},
          {"comparison", measurement.comparison},
          {"floor_us", measurement.floor_us},
          {"sustained_us", measurement.sustained_us},
          {"samples", measurement.samples}};
}

Measurement measurement_from_wire(const nlohmann::json& json) {
  Measurement out;
  out.problem = json.at("problem");
  out.mode = mode_from_name(json.at("mode").get<std::string>());
  out.not_measured = json.at("not_measured");
  out.rounds = json.at("rounds");
  out.baseline_us = estimate_from(json.at("baseline_us"));
  out.contestant_us = estimate_from(json.at("contestant_us"));
  out.speedup = estimate_from(json.at("speedup"));
  out.self = estimate_from(json.at("self"));
  out.comparison = json.at("comparison");
  out.floor_us = json.at("floor_us");
  out.sustained_us = json.at("sustained_us");
  out.samples = json.at("samples");
  return out;
}

std::string line_of(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace thresher::arena::user_kernels
