#include "arena/gates/verdict.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

namespace thresher::arena {
namespace {

std::string describe(const ModeSpeedup& mode) {
  const Comparison comparison = compare(mode.geomean, mode.self, mode.rounds);
  const std::string what = mode.rounds < min_rounds && comparison != Comparison::slower
                               ? fmt::format("too few rounds to say ({}, {} are needed)", mode.rounds, min_rounds)
                               : std::string(name(comparison));
  return fmt::format("{}: {:.3f}x [{:.3f}, {:.3f}], {} (noise {:.3f}x)", name(mode.mode), mode.geomean.value,
                     mode.geomean.low, mode.geomean.high, what, noise_factor(mode.self));
}

/// Why the measured times rule the contestant out, whatever else holds.
std::optional<std::string> measured_rejection(const std::vector<ModeSpeedup>& modes, const Acceptance& accept) {
  for (const ModeSpeedup& mode : modes) {
    const Comparison comparison = compare(mode.geomean, mode.self, mode.rounds);
    if (comparison == Comparison::slower) {
      return fmt::format("slower in {}", name(mode.mode));
    }
    const double floor = accept.geomean_speedup.value_or(0);
    const bool is_settled = comparison == Comparison::faster || mode.geomean.high < floor;
    if (is_settled && mode.geomean.value < floor) {
      return fmt::format("{:.3f}x in {} is less than the {}x it must reach", mode.geomean.value, name(mode.mode),
                         floor);
    }
    const double least = *std::min_element(mode.each.begin(), mode.each.end());
    if (comparison == Comparison::faster && accept.each_speedup && least < *accept.each_speedup) {
      return fmt::format("{:.3f}x on one problem in {} is less than the {}x it must reach on each", least,
                         name(mode.mode), *accept.each_speedup);
    }
  }
  return std::nullopt;
}

/// Terms that this machine or version cannot judge.
std::vector<std::string> unjudged_terms(const std::vector<GateResult>& gates, const Acceptance& accept) {
  std::vector<std::string> terms;
  for (const GateKind wanted : accept.gates) {
    const GateResult* const found = find_gate(gates, wanted);
    if (found == nullptr || found->outcome != Outcome::passed) {
      terms.push_back(fmt::format("gate {}", name(wanted)));
    }
  }
  if (accept.shared_memory_bytes_below) {
    terms.emplace_back("shared_memory_bytes_below");
  }
  if (accept.occupancy_not_worse) {
    terms.emplace_back("occupancy_not_worse");
  }
  return terms;
}

/// Honest, but supports fewer shapes than a kernel for any shape.
std::string refused_shapes(const std::vector<GateResult>& gates) {
  const GateResult* const honest = find_gate(gates, GateKind::honest);
  const auto* const evidence = honest == nullptr ? nullptr : std::get_if<HonestEvidence>(&honest->evidence);
  const bool refuses = evidence != nullptr &&
                       std::any_of(evidence->probes.begin(), evidence->probes.end(), [](const ProbeResult& probe) {
                         return probe.not_judged.starts_with(refuses_another_shape);
                       });
  return refuses ? "; it refuses 1 of 1 shapes that the suite does not list" : "";
}

std::string fall_back_advice(const std::vector<ModeSpeedup>& modes, const Acceptance& accept,
                             const std::string& baseline) {
  const auto falls = [&](const ModeSpeedup& mode) { return mode.geomean.value < accept.fall_back_below.value_or(0); };
  return std::any_of(modes.begin(), modes.end(), falls)
             ? fmt::format("; under {}x: fall back to {}", *accept.fall_back_below, baseline)
             : "";
}

}  // namespace

Decision reach_verdict(const std::vector<ModeSpeedup>& modes, const std::vector<GateResult>& gates, const Pitch* pitch,
                       const std::string& baseline) {
  const Acceptance accept = pitch == nullptr ? Acceptance{} : pitch->accept;
  std::vector<std::string> measured;
  for (const ModeSpeedup& mode : modes) {
    measured.push_back(describe(mode));
  }
  const std::string over = fmt::format("over {}: {}", baseline, fmt::join(measured, "; "));
  const std::string advice = fall_back_advice(modes, accept, baseline);
  if (const auto why = measured_rejection(modes, accept)) {
    return {Verdict::rejected, *why + advice + "; " + over};
  }
  const auto is_faster = [](const ModeSpeedup& mode) {
    return compare(mode.geomean, mode.self, mode.rounds) == Comparison::faster;
  };
  if (!std::all_of(modes.begin(), modes.end(), is_faster)) {
    return {Verdict::within_noise, over + advice};
  }
  if (const auto terms = unjudged_terms(gates, accept); !terms.empty()) {
    return {Verdict::not_judged,
            fmt::format("its terms ask for {}, which cannot be judged here; {}", fmt::join(terms, ", "), over)};
  }
  std::vector<std::string_view> open;
  for (const GateResult& gate : gates) {
    if (gate.outcome == Outcome::not_judged) {
      open.push_back(name(gate.kind));
    }
  }
  const GateCount count = count_gates(gates);  // and this one
  return {Verdict::accepted,
          fmt::format("{} of {} gates judged; {}{}{}", count.judged + 1, count.all + 1, over, refused_shapes(gates),
                      open.empty() ? "" : fmt::format("; not judged here: {}", fmt::join(open, ", ")))};
}

}  // namespace thresher::arena
