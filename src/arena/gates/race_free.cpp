#include "arena/gates/race_free.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "arena/emulation/examine.hpp"
#include "arena/random.hpp"
#include "reference/parallel.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

using reference::parallel_for;

/// Seeds 0 to 3 are the extreme schedules; each tournament draws the others anew.
std::vector<std::uint64_t> schedule_seeds(std::uint64_t tournament_seed) {
  constexpr std::uint64_t corners = 4;
  constexpr int drawn = 8;
  std::vector<std::uint64_t> seeds;
  for (std::uint64_t corner = 0; corner < corners; ++corner) {
    seeds.push_back(corner);
  }
  for (int i = 0; i < drawn; ++i) {
    constexpr std::uint64_t few_digits = 1'000'000;  // people type them
    seeds.push_back(corners + derive_seed(tournament_seed, fmt::format("schedule {}", i)) % few_digits);
  }
  return seeds;
}

/// The command that reproduces a finding.
std::string replay(const EmulatedKernel& kernel, const Problem& problem, std::uint64_t seed) {
  return fmt::format("thresher emulate {} --schedules 1 --seed {}", kernel.arguments(problem), seed);
}

/// The emulator's findings about one kernel.
struct Findings {
  Outcome outcome = Outcome::passed;
  std::string sentence;  ///< empty when nothing was found
  ScheduledKernel evidence;
};

/// Reports the first problem, in their order, with a finding.
Findings examine_edges(const EmulatedKernel& kernel, const std::vector<std::uint64_t>& seeds) {
  Findings findings;
  findings.evidence.kernel = kernel.title();
  const std::vector<Problem> problems = kernel.edges();
  std::vector<Examination> all(problems.size());
  parallel_for(std::ssize(problems), 0, [&](std::int64_t index) {
    const auto i = static_cast<std::size_t>(index);
    all[i] = examine(kernel, problems[i], seeds);
  });
  for (std::size_t i = 0; i < problems.size(); ++i) {
    const Problem& problem = problems[i];
    const Examination& examined = all[i];
    findings.evidence.problems.push_back(label(problem));
    if (!examined.clean()) {
      findings.outcome = Outcome::failed;
      findings.sentence = fmt::format("{} on {}, seed {}: {}", kernel.title(), label(problem), examined.seed,
                                      examined.finding.substr(0, examined.finding.find('\n')));
      findings.evidence.finding = {examined.finding, examined.seed, replay(kernel, problem, examined.seed)};
      break;
    }
  }
  return findings;
}

class RaceFreeGate final : public Gate {
 public:
  [[nodiscard]] GateKind kind() const override { return GateKind::race_free; }

  [[nodiscard]] GateResult judge(Match& match) const override {
    std::map<std::string, std::shared_ptr<const EmulatedKernel>> kernels;
    std::string why_not;
    for (const Problem& problem : match.suite.problems) {
      const Emulation emulation = match.contestant.emulation(problem);
      if (emulation.kernel) {
        kernels.emplace(emulation.kernel->key(), emulation.kernel);
      } else if (why_not.empty()) {
        why_not = emulation.why_none;
      }
    }
    return judge_kernels(kernels, schedule_seeds(match.seed), why_not);
  }

 private:
  [[nodiscard]] GateResult judge_kernels(const std::map<std::string, std::shared_ptr<const EmulatedKernel>>& kernels,
                                         const std::vector<std::uint64_t>& seeds, std::string why_not) const {
    RaceFreeEvidence evidence{seeds, {}};
    examine_all(kernels, seeds);
    for (const auto& [key, kernel] : kernels) {
      const Findings& findings = examined_.at(name_of(*kernel, seeds));
      evidence.kernels.push_back(findings.evidence);
      if (findings.outcome == Outcome::failed) {
        return {kind(), Outcome::failed, findings.sentence, std::move(evidence)};
      }
      if (findings.outcome == Outcome::not_judged && why_not.empty()) {
        why_not = findings.sentence;
      }
    }
    if (!why_not.empty()) {
      return {kind(), Outcome::not_judged, why_not, std::move(evidence)};
    }
    return {kind(), Outcome::passed,
            fmt::format("{} kernel{} on shapes around {} tile{}, {} schedules each: nothing found", kernels.size(),
                        kernels.size() == 1 ? "" : "s", kernels.size() == 1 ? "its" : "their",
                        kernels.size() == 1 ? "" : "s", seeds.size()),
            std::move(evidence)};
  }

  static std::string name_of(const EmulatedKernel& kernel, const std::vector<std::uint64_t>& seeds) {
    return fmt::format("{} {}", kernel.key(), fmt::join(seeds, ","));
  }

  /// Examines the kernels that are still missing, in parallel.
  void examine_all(const std::map<std::string, std::shared_ptr<const EmulatedKernel>>& kernels,
                   const std::vector<std::uint64_t>& seeds) const {
    std::vector<const EmulatedKernel*> unknown;
    for (const auto& [key, kernel] : kernels) {
      if (!examined_.contains(name_of(*kernel, seeds))) {
        unknown.push_back(kernel.get());
      }
    }
    std::vector<Findings> found(unknown.size());
    parallel_for(std::ssize(unknown), 0, [&](std::int64_t index) {
      const auto i = static_cast<std::size_t>(index);
      found[i] = look_at(*unknown[i], seeds);
    });
    for (std::size_t i = 0; i < unknown.size(); ++i) {
      examined_.emplace(name_of(*unknown[i], seeds), std::move(found[i]));
    }
  }

  static Findings look_at(const EmulatedKernel& kernel, const std::vector<std::uint64_t>& seeds) {
    try {
      return examine_edges(kernel, seeds);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::unsupported && error.code() != ErrorCode::compile) {
        throw;
      }
      return {Outcome::not_judged, error.what(), {kernel.title(), {}, {}, error.what()}};
    }
  }

  mutable std::map<std::string, Findings> examined_;
};

}  // namespace

std::unique_ptr<Gate> make_race_free_gate() { return std::make_unique<RaceFreeGate>(); }

}  // namespace thresher::arena
