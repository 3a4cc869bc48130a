#pragma once
/// The verdict about a contestant on a suite.
#include <cstdint>
#include <string_view>
#include <vector>

#include "arena/results/gate.hpp"

namespace thresher::arena {

enum class Verdict : std::uint8_t {
  accepted,            ///< faster than its baseline by the required factor
  rejected,            ///< not fast enough: a result, and no failure
  within_noise,        ///< neither can be decided
  not_judged,          ///< without times, or without terms that this machine can judge
  not_timed,           ///< the suite is only for correctness
  unsupported_format,  ///< it does not support the suite's formats: no failure
  baseline,            ///< the reference for the others
  failed,              ///< a gate failed
};

/// "accepted", "within noise", "failed", ….
[[nodiscard]] std::string_view name(Verdict verdict) noexcept;
/// The verdict of a text that begins with its name, as a ledger stores it: "failed at correct". Throws
/// Error(invalid_argument) for anything else.
[[nodiscard]] Verdict verdict_from_text(std::string_view text);

/// The number of gates that were judged, passed or not, and their total.
struct GateCount {
  std::size_t judged = 0;
  std::size_t all = 0;
};
[[nodiscard]] GateCount count_gates(const std::vector<GateResult>& gates);

}  // namespace thresher::arena
