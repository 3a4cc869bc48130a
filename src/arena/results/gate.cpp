#include "arena/results/gate.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "thresher/error.hpp"

namespace thresher::arena {

GateKind gate_from_name(std::string_view wanted) {
  std::vector<std::string_view> known;
  for (const GateTraits& gate : all_gates) {
    if (gate.name == wanted) {
      return gate.kind;
    }
    known.push_back(gate.name);
  }
  throw Error(ErrorCode::invalid_argument,
              fmt::format("there is no gate \"{}\", only {}", wanted, fmt::join(known, ", ")));
}

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

const GateResult* find_gate(const std::vector<GateResult>& gates, GateKind kind) {
  const auto found =
      std::find_if(gates.begin(), gates.end(), [&](const GateResult& gate) { return gate.kind == kind; });
  return found == gates.end() ? nullptr : &*found;
}

const GateResult* first_failure(const std::vector<GateResult>& gates) {
  const auto found = std::find_if(gates.begin(), gates.end(), [](const GateResult& gate) {
    return gate.outcome == Outcome::failed && traits(gate.kind).ends_the_match;
  });
  return found == gates.end() ? nullptr : &*found;
}

}  // namespace thresher::arena
