#include "arena/results/finding.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace thresher::arena {
namespace {

nlohmann::json to_json(double value) {  // JSON has no NaN and no Inf
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(fmt::to_string(value));
}
nlohmann::json to_json(std::int64_t value) { return value; }

nlohmann::json to_json(const JudgeEvidence::Numbers& numbers) {
  nlohmann::json json = nlohmann::json::object();
  for (const auto& [name, number] : numbers) {
    json[name] = std::visit([](auto value) { return to_json(value); }, number);
  }
  return json;
}

}  // namespace

std::string to_json(const TrialResult& result) {
  const Finding& finding = result.finding;
  nlohmann::json json = to_json(finding.evidence.numbers);
  if (!finding.evidence.rule.empty()) {
    json["rule"] = finding.evidence.rule;
  }
  for (const auto& [name, numbers] : finding.evidence.places) {
    json[name] = to_json(numbers);
  }
  if (finding.error_against_exact) {
    json["error_against_exact_operands"] = *finding.error_against_exact;
  }
  json["problem"] = result.problem;
  json["distribution"] = result.distribution;
  json["correct"] = finding.correct;
  if (!finding.correct) {
    json["fault"] = finding.fault;
    json["sentence"] = finding.sentence;
  }
  return json.dump();
}

}  // namespace thresher::arena
