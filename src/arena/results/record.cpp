#include "arena/results/record.hpp"

#include <fmt/chrono.h>

#include <chrono>

namespace thresher::arena {

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
