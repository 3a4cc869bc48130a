#include "arena/honesty/honesty.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "arena/honesty/probes.hpp"
#include "arena/random.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

/// The findings of the experiments on one problem.
struct Probed {
  std::vector<ProbeResult> results;
  std::optional<std::size_t> cannot_tell{};  ///< the first that showed that the problem is inconclusive

  /// Returns whether it was no accusation.
  bool add(const honesty::NamedProbe& probe, const honesty::Bench& bench) {
    ProbeResult result{probe.name, std::nullopt, {}};
    try {
      honesty::Answer answer = probe.probe(bench);
      result.accusation = std::move(answer.accusation);
      result.not_judged = std::move(answer.not_judged);
      if (answer.problem_cannot_tell && !cannot_tell) {
        cannot_tell = results.size();
      }
    } catch (const Error& error) {
      result.accusation = Accusation{"fails where it worked before", error.what()};
    }
    results.push_back(std::move(result));
    return !results.back().accusation;
  }
};

double operations_of(const Problem& problem) { return problem.operation().cost(problem).operations; }

/// Whether a problem suits the experiments better than another. The most work within the limit wins, since times of
/// tiny work say nothing; above the limit the least work wins.
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

Probed probe(const Problem& problem, const Contestant& contestant, Rig& rig, const HonestyOptions& options) {
  Rig& own = contestant.rig(rig);
  honesty::Grounds grounds;
  bool has_grounds = static_cast<bool>(options.pattern_of);
  ProbeResult batches{"batches of calls", std::nullopt, {}};
  try {
    grounds.pattern = has_grounds ? options.pattern_of(problem, own) : SamplePattern{};
  } catch (const Error& error) {  // calls one at a time give the best reason
    batches.accusation = Accusation{"fails where it worked before", error.what()};
    has_grounds = false;
  }
  std::map<Distribution, honesty::Inputs> drawn;
  const honesty::Bench bench{problem, contestant, own, options, has_grounds ? &grounds : nullptr, &drawn};
  Probed probed;
  for (const std::vector<honesty::NamedProbe>* group : {&honesty::data_probes(), &honesty::time_probes()}) {
    for (const honesty::NamedProbe& probe : *group) {
      if (options.check_time) {
        options.check_time();
      }
      if (!probed.add(probe, bench)) {
        return probed;
      }
    }
  }
  if (batches.accusation) {
    probed.results.push_back(std::move(batches));
  }
  return probed;
}

/// The candidate problems, the best first where they are not drawn.
struct Candidates {
  std::vector<const Problem*> problems{};
  bool are_drawn = false;

  /// Takes one out.
  const Problem& take(Random& random) {
    const auto place = problems.begin() + static_cast<std::ptrdiff_t>(are_drawn ? random.below(problems.size()) : 0);
    const Problem* const taken = *place;
    problems.erase(place);
    return *taken;
  }
};

Candidates candidates_of(const Suite& suite, const Contestant& contestant, Rig& rig, const HonestyOptions& options) {
  Candidates all;
  Candidates own;
  own.are_drawn = true;
  for (const Problem& problem : suite.problems) {
    // A problem without work is inconclusive.
    if (operations_of(problem) <= 0 || !contestant.feasible(problem, rig.memory()).yes) {
      continue;
    }
    all.problems.push_back(&problem);
    if (options.pattern_of && operations_of(problem) <= options.max_operations) {
      own.problems.push_back(&problem);
    }
  }
  std::stable_sort(all.problems.begin(), all.problems.end(), [&](const Problem* one, const Problem* other) {
    return is_better(operations_of(*one), operations_of(*other), options.max_operations);
  });
  return own.problems.empty() ? all : own;
}

std::string sentence_of(const Probed& probed, const std::string& problem) {
  const auto not_judged = std::count_if(probed.results.begin(), probed.results.end(),
                                        [](const ProbeResult& result) { return !result.not_judged.empty(); });
  const ProbeResult& last = probed.results.back();
  if (last.accusation) {
    return fmt::format("{}: {} (experiment \"{}\" on {})", last.accusation->cheat, last.accusation->sentence,
                       last.probe, problem);
  }
  if (probed.cannot_tell) {
    const ProbeResult& said = probed.results[*probed.cannot_tell];
    return fmt::format("{} cannot tell who looks at the inputs: {} (experiment \"{}\")", problem, said.not_judged,
                       said.probe);
  }
  return fmt::format("{} experiments on {} found nothing{}", std::ssize(probed.results) - not_judged, problem,
                     not_judged == 0 ? "" : fmt::format(", {} could not be made", not_judged));
}

}  // namespace

std::vector<ProbeResult> probe_honesty(const Problem& problem, const Contestant& contestant, Rig& rig,
                                       const HonestyOptions& options) {
  return probe(problem, contestant, rig, options).results;
}

GateResult judge_honesty(const Suite& suite, const Contestant& contestant, Rig& rig, const HonestyOptions& options) {
  constexpr int max_problems_asked = 3;
  GateResult gate{GateKind::honest, Outcome::not_judged, "no problem of the suite is feasible and has work to do"};
  Candidates candidates = candidates_of(suite, contestant, rig, options);
  Random random(derive_seed(options.secret_seed, "problem"));
  for (int asked = 0; asked < max_problems_asked && !candidates.problems.empty(); ++asked) {
    const Problem problem = within(candidates.take(random), options.max_operations);
    Probed probed = probe(problem, contestant, rig, options);
    gate.sentence = sentence_of(probed, label(problem));
    gate.outcome = probed.results.back().accusation ? Outcome::failed
                   : probed.cannot_tell             ? Outcome::not_judged
                                                    : Outcome::passed;
    gate.evidence = HonestEvidence{label(problem), options.secret_seed, std::move(probed.results)};
    if (gate.outcome != Outcome::not_judged) {
      break;
    }
  }
  return gate;
}

}  // namespace thresher::arena
