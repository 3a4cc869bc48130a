#pragma once
/// Gates as data: a name, an outcome, a sentence and evidence.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace thresher::arena {

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
  std::string gate;
  Outcome outcome = Outcome::passed;
  std::string sentence;         ///< why, for people
  std::string evidence = "{}";  ///< JSON object
};

/// Null when it is not among them.
[[nodiscard]] const GateResult* find_gate(const std::vector<GateResult>& gates, std::string_view name);
/// The first that failed, but for the verdict, whose rejection is a result; null when none did.
[[nodiscard]] const GateResult* first_failure(const std::vector<GateResult>& gates);

/// Every gate there is, in the order in which they are judged.
[[nodiscard]] const std::vector<std::string>& gate_names();

}  // namespace thresher::arena
