#include "arena/honesty/honesty.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "arena/honesty/probes.hpp"
#include "arena/random.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

ProbeResult run_probe(const honesty::NamedProbe& probe, const honesty::Bench& bench) {
  ProbeResult result{probe.name, std::nullopt, {}};
  try {
    honesty::Answer answer = probe.probe(bench);
    result.accusation = std::move(answer.accusation);
    result.not_judged = std::move(answer.not_judged);
  } catch (const Error& error) {
    result.accusation = Accusation{"fails where it worked before", error.what()};
  }
  return result;
}

double operations_of(const Problem& problem) { return problem.operation().cost(problem).operations; }

/// Whether a problem suits the experiments better than another: the most work within the limit, since times of next to
/// no work say nothing; else the least.
bool is_better(double operations, double than, double max_operations) {
  const bool fits = operations <= max_operations;
  const bool other_fits = than <= max_operations;
  return fits != other_fits ? fits : fits ? operations > than : operations < than;
}

/// The problem, halved until it is within the limit.
Problem within(Problem problem, double max_operations) {
  while (max_operations > 0 && operations_of(problem) > max_operations) {
    const std::optional<Problem> smaller = problem.operation().smaller(problem);
    if (!smaller) {
      break;
    }
    problem = *smaller;
  }
  return problem;
}

}  // namespace

std::vector<ProbeResult> probe_honesty(const Problem& problem, const Contestant& contestant, Rig& rig,
                                       const HonestyOptions& options) {
  Rig& own = contestant.rig(rig);
  honesty::Grounds grounds;
  bool has_grounds = static_cast<bool>(options.pattern_of);
  ProbeResult batches{"batches of calls", std::nullopt, {}};
  try {
    grounds.pattern = has_grounds ? options.pattern_of(problem, own) : SamplePattern{};
  } catch (const Error& error) {  // calls one at a time tell best why
    batches.accusation = Accusation{"fails where it worked before", error.what()};
    has_grounds = false;
  }
  std::map<Distribution, honesty::Inputs> drawn;
  const honesty::Bench bench{problem, contestant, own, options, has_grounds ? &grounds : nullptr, &drawn};
  std::vector<ProbeResult> results;
  for (const std::vector<honesty::NamedProbe>* group : {&honesty::data_probes(), &honesty::time_probes()}) {
    for (const honesty::NamedProbe& probe : *group) {
      results.push_back(run_probe(probe, bench));
      if (results.back().accusation) {
        return results;
      }
    }
  }
  if (batches.accusation) {
    results.push_back(std::move(batches));
  }
  return results;
}

GateResult judge_honesty(const Suite& suite, const Contestant& contestant, Rig& rig, const HonestyOptions& options) {
  GateResult gate{GateKind::honest, Outcome::passed, ""};
  std::vector<const Problem*> own;
  const Problem* chosen = nullptr;
  for (const Problem& problem : suite.problems) {
    // A problem without work tells nothing.
    if (operations_of(problem) <= 0 || !contestant.feasible(problem, rig.memory()).yes) {
      continue;
    }
    if (!chosen || is_better(operations_of(problem), operations_of(*chosen), options.max_operations)) {
      chosen = &problem;
    }
    if (options.pattern_of && operations_of(problem) <= options.max_operations) {
      own.push_back(&problem);
    }
  }
  if (!own.empty()) {
    chosen = own[Random(derive_seed(options.secret_seed, "problem")).below(own.size())];
  }
  if (!chosen) {
    gate.outcome = Outcome::not_judged;
    gate.sentence = "no problem of the suite is feasible and has work to do";
    return gate;
  }
  const Problem asked = within(*chosen, options.max_operations);
  const std::vector<ProbeResult> results = probe_honesty(asked, contestant, rig, options);
  gate.evidence = HonestEvidence{label(asked), options.secret_seed, results};
  std::size_t not_judged = 0;
  for (const ProbeResult& result : results) {
    not_judged += result.not_judged.empty() ? 0 : 1;
  }
  if (const auto& accusation = results.back().accusation) {
    gate.outcome = Outcome::failed;
    gate.sentence = fmt::format("{}: {} (experiment \"{}\" on {})", accusation->cheat, accusation->sentence,
                                results.back().probe, label(asked));
  } else {
    gate.sentence = fmt::format("{} experiments on {} found nothing{}", results.size() - not_judged, label(asked),
                                not_judged == 0 ? "" : fmt::format(", {} could not be made", not_judged));
  }
  return gate;
}

}  // namespace thresher::arena
