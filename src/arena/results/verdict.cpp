#include "arena/results/verdict.hpp"

#include <algorithm>
#include <array>

#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

constexpr std::array all_verdicts{Verdict::accepted,   Verdict::rejected,  Verdict::within_noise,
                                  Verdict::not_judged, Verdict::not_timed, Verdict::unsupported_format,
                                  Verdict::baseline,   Verdict::failed};

}  // namespace

std::string_view name(Verdict verdict) noexcept {
  switch (verdict) {
    case Verdict::accepted: return "accepted";
    case Verdict::rejected: return "rejected";
    case Verdict::within_noise: return "within noise";
    case Verdict::not_judged: return "not judged";
    case Verdict::not_timed: return "not timed";
    case Verdict::unsupported_format: return "not for these formats";
    case Verdict::baseline: return "baseline";
    case Verdict::failed: return "failed";
  }
  return "unknown";
}

Verdict verdict_from_text(std::string_view text) {
  for (const Verdict verdict : all_verdicts) {
    if (text.starts_with(name(verdict))) {
      return verdict;
    }
  }
  throw Error(ErrorCode::invalid_argument, "there is no verdict \"" + std::string(text) + "\"");
}

GateCount count_gates(const std::vector<GateResult>& gates) {
  const auto judged = std::count_if(gates.begin(), gates.end(), [](const GateResult& gate) {
    return gate.outcome == Outcome::passed || gate.outcome == Outcome::failed;
  });
  return {static_cast<std::size_t>(judged), gates.size()};
}

}  // namespace thresher::arena
