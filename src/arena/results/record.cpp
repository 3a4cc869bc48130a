#include "arena/results/record.hpp"

#include <fmt/chrono.h>

#include <chrono>
#include <nlohmann/json.hpp>

namespace thresher::arena {

std::optional<ClaimRecord> claim_from_json(const std::string& pitch) {
  const auto json = pitch.empty() ? nlohmann::json::object() : nlohmann::json::parse(pitch);
  if (!json.contains("claim")) {
    return std::nullopt;
  }
  return ClaimRecord{json.at("title"), json["claim"].at("speedup_low"), json["claim"].at("speedup_high")};
}

std::optional<PanelRecord> panel_from_json(const std::string& opinion) {
  const auto json = opinion.empty() ? nlohmann::json::object() : nlohmann::json::parse(opinion);
  if (!json.contains("predicted") || json["predicted"].is_null()) {
    return std::nullopt;
  }
  const auto& claimed = json.at("claimed");
  const auto& interval = json.at("predicted_interval");
  return PanelRecord{claimed.at(0), claimed.at(1), json.at("predicted"), interval.at(0), interval.at(1)};
}

std::string plain_verdict(const Entry& entry) {
  const GateResult* const failed = first_failure(entry.gates);
  return entry.verdict == Verdict::failed && failed != nullptr ? fmt::format("failed at {}", name(failed->kind))
                                                               : std::string(name(entry.verdict));
}

std::string verdict_text(const Entry& entry) {
  if (entry.verdict != Verdict::accepted) {
    return plain_verdict(entry);
  }
  const GateCount count = count_gates(entry.gates);
  return fmt::format("accepted ({} of {} gates judged)", count.judged, count.all);
}

std::string utc_now() {
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now));
}

}  // namespace thresher::arena
