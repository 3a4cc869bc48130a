#pragma once
/// What became of a contestant on a suite.
#include <cstdint>
#include <string_view>
#include <vector>

#include "arena/results/gate.hpp"

namespace thresher::arena {

enum class Verdict : std::uint8_t {
  accepted,            ///< faster than its baseline by what it had to be
  rejected,            ///< not that fast: a result, and no failure
  within_noise,        ///< neither can be said
  not_judged,          ///< without times, or without terms that this machine can judge
  not_timed,           ///< the suite is there for correctness alone
  unsupported_reason,  ///< the suite's formats are not those that it is made for: no failure
  baseline,            ///< the others are measured against it
  failed,              ///< at the first gate that failed
};

/// "accepted", "within noise", "failed", ….
[[nodiscard]] std::string_view name(Verdict verdict) noexcept;
/// The verdict of a text that begins with its name, as a ledger keeps it: "failed at correct". Throws
/// Error(invalid_argument) for anything else.
[[nodiscard]] Verdict verdict_from_text(std::string_view text);

/// How many gates were judged, passed or not, of how many there are.
struct GateCount {
  std::size_t judged = 0;
  std::size_t all = 0;
};
[[nodiscard]] GateCount count_gates(const std::vector<GateResult>& gates);

}  // namespace thresher::arena
