#include "arena/gates/gate.hpp"

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

const std::vector<std::string>& gate_names() {
  static const std::vector<std::string> names{"feasible", "compiles", "audited", "race-free",
                                              "correct",  "honest",   "timed",   "verdict"};
  return names;
}

}  // namespace thresher::arena
