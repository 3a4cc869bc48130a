#include "arena/results/gate.hpp"

#include <algorithm>
#include <array>

#include "thresher/error.hpp"

namespace thresher::arena {

std::string_view name(Outcome outcome) noexcept {
  switch (outcome) {
    case Outcome::passed: return "passed";
    case Outcome::failed: return "failed";
    case Outcome::not_judged: return "not judged";
    case Outcome::skipped: return "skipped";
  }
  return "unknown";
}

Outcome outcome_from_name(std::string_view wanted) {
  for (const Outcome outcome : {Outcome::passed, Outcome::failed, Outcome::not_judged, Outcome::skipped}) {
    if (name(outcome) == wanted) {
      return outcome;
    }
  }
  throw Error(ErrorCode::invalid_argument, "there is no outcome \"" + std::string(wanted) + "\"");
}

const GateResult* find_gate(const std::vector<GateResult>& gates, std::string_view wanted) {
  const auto found =
      std::find_if(gates.begin(), gates.end(), [&](const GateResult& gate) { return gate.gate == wanted; });
  return found == gates.end() ? nullptr : &*found;
}

const GateResult* first_failure(const std::vector<GateResult>& gates) {
  const auto found = std::find_if(gates.begin(), gates.end(), [](const GateResult& gate) {
    return gate.outcome == Outcome::failed && gate.gate != "verdict";
  });
  return found == gates.end() ? nullptr : &*found;
}

const std::vector<std::string>& gate_names() {
  static const std::vector<std::string> names{"feasible", "compiles", "audited", "race-free",
                                              "correct",  "honest",   "timed",   "verdict"};
  return names;
}

}  // namespace thresher::arena
