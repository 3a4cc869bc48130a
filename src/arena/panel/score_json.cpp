#include <nlohmann/json.hpp>

#include "arena/panel/panel.hpp"

namespace thresher::arena {
namespace {

nlohmann::json number_or_null(const std::optional<double>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

}  // namespace

std::string score_json(const PitchScore& opinion) {
  return nlohmann::json{{"pitch", opinion.pitch},
                        {"score", opinion.score},
                        {"withdrawn", opinion.withdrawn},
                        {"claimed", {opinion.claimed_low, opinion.claimed_high}},
                        {"predicted", number_or_null(opinion.predicted_speedup)},
                        {"predicted_interval", {opinion.predicted_low, opinion.predicted_high}},
                        {"touched_share", number_or_null(opinion.touched_share)},
                        {"scores",
                         {{"speedup", opinion.speedup_score},
                          {"feasibility", opinion.feasibility_score},
                          {"risk", opinion.risk_score},
                          {"evidence", opinion.evidence_score}}},
                        {"obstacles", opinion.infeasible_reasons},
                        {"reason", opinion.reason}}
      .dump();
}

}  // namespace thresher::arena
