#include "arena/results/mode_samples.hpp"

#include <nlohmann/json.hpp>
#include <optional>

namespace thresher::arena {
namespace {

using Json = nlohmann::json;

Json value_of(const Telemetry& telemetry) {
  Json json = Json::object();
  const auto add = [&](const char* key, const std::optional<double>& value) {
    if (value) {
      json[key] = *value;
    }
  };
  add("mhz", telemetry.clock_mhz);
  add("w", telemetry.power_w);
  add("c", telemetry.temperature_c);
  if (!telemetry.throttle_reasons.empty()) {
    json["throttled"] = telemetry.throttle_reasons;
  }
  return json;
}

Json value_of(const Rotation& rotation) {
  return {{"sets", rotation.num_sets},
          {"bytes", rotation.rotated_bytes()},
          {"last_level_cache_bytes", rotation.last_level_cache_bytes},
          {"cold", rotation.is_cold()},
          {"why_not_cold", rotation.why_not_cold()}};
}

}  // namespace

std::string to_json(const ModeSamples& samples) {
  Json telemetry = Json::array();
  for (const Telemetry& one : samples.telemetry) {
    telemetry.push_back(value_of(one));
  }
  Json json{{"calls_per_sample", samples.calls_per_sample},
            {"baseline_us", samples.baseline_us},
            {"baseline_again_us", samples.baseline_again_us},
            {"contestant_us", samples.contestant_us},
            {"telemetry", telemetry},
            {"rotation", value_of(samples.rotation)}};
  if (!samples.seen_us.empty()) {
    json["seen_us"] = samples.seen_us;
  }
  return json.dump();
}

}  // namespace thresher::arena
