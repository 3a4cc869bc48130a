#pragma once
/// Gates as data: their kinds, and an outcome with a sentence and evidence.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "arena/results/evidence.hpp"

namespace thresher::arena {

/// In the order in which they are judged.
enum class GateKind : std::uint8_t { feasible, compiles, audited, race_free, correct, honest, timed, verdict };

struct GateTraits {
  GateKind kind;
  std::string_view name;  ///< as ledgers, reports and pitches spell it
  bool needs_a_run;       ///< it runs the contestant, or judges its run
  bool ends_the_match;    ///< a failure makes all later gates meaningless; the verdict's rejection is a result
};

inline constexpr std::array all_gates{
    GateTraits{GateKind::feasible, "feasible", false, true}, GateTraits{GateKind::compiles, "compiles", false, true},
    GateTraits{GateKind::audited, "audited", false, true},   GateTraits{GateKind::race_free, "race-free", false, true},
    GateTraits{GateKind::correct, "correct", true, true},    GateTraits{GateKind::honest, "honest", true, true},
    GateTraits{GateKind::timed, "timed", true, true},        GateTraits{GateKind::verdict, "verdict", true, false},
};

static_assert(std::ranges::all_of(all_gates, [](const GateTraits& gate) {
  return &gate == &all_gates[static_cast<std::size_t>(gate.kind)];
}));

[[nodiscard]] constexpr const GateTraits& traits(GateKind kind) noexcept {
  return all_gates[static_cast<std::size_t>(kind)];
}
[[nodiscard]] constexpr std::string_view name(GateKind kind) noexcept { return traits(kind).name; }
/// Throws Error(invalid_argument) for anything else, and names the gates.
[[nodiscard]] GateKind gate_from_name(std::string_view name);

enum class Outcome : std::uint8_t {
  passed,
  failed,
  not_judged,  ///< cannot be judged on this machine or in this version; never counts as passed
  skipped,     ///< an earlier gate failed, or the suite does not ask for it
};

/// "passed", "failed", "not judged", "skipped".
[[nodiscard]] std::string_view name(Outcome outcome) noexcept;
/// Throws Error(invalid_argument) for anything else.
[[nodiscard]] Outcome outcome_from_name(std::string_view name);

struct GateResult {
  GateKind kind = GateKind::feasible;
  Outcome outcome = Outcome::passed;
  std::string sentence;  ///< why, for people
  Evidence evidence{};
};

/// Null when the kind is missing.
[[nodiscard]] const GateResult* find_gate(const std::vector<GateResult>& gates, GateKind kind);
/// The first that failed and ended the match; null when none did.
[[nodiscard]] const GateResult* first_failure(const std::vector<GateResult>& gates);

}  // namespace thresher::arena
