// The gate `honest` as a tournament judges it: through every gate before it, with a seed of its own.
#include "arena/gates/honest.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "arena/cheats/cheats.hpp"
#include "arena/tournament.hpp"
#include "support/scratch_folder.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

namespace fs = std::filesystem;

Suite suite_of(const Problem& problem, bool timed) {
  Suite suite;
  suite.name = "planted";
  suite.title = "Planted";
  suite.distributions = {Distribution::contest};
  suite.problems = {problem};
  suite.timed = timed;
  return suite;
}

GateResult judged(const Contestant& contestant, Rig& rig, const Suite& suite, const Gate& gate) {
  Progress progress = Progress::silent();
  Match match{suite, contestant, contestant, nullptr, rig, cheats::announced_seed, {}, progress};
  return gate.judge(match);
}

/// Those that a tournament sees: its contestants may pack their weights.
std::vector<cheats::Cheat> tournament_cheats() {
  std::vector<cheats::Cheat> all = cheats::all_cheats();
  std::erase_if(all, [](const cheats::Cheat& cheat) { return !cheat.weights_are_packed; });
  return all;
}

class CheatInATournament : public ::testing::TestWithParam<std::size_t> {};

TEST_P(CheatInATournament, IsCaughtByName) {
  const cheats::Cheat cheat = tournament_cheats()[GetParam()];
  cheats::CheatRig rig(cheat.machine);
  const GateResult result = judged(cheats::CheatContestant(cheat.name, cheat.prepare, rig), rig,
                                   suite_of(cheats::planted_problem(), true), *make_honest_gate());
  EXPECT_EQ(result.kind, GateKind::honest);
  EXPECT_EQ(result.outcome, Outcome::failed) << cheat.name;
  // Beside calls on other sets what a cheat keeps may be wrong before the experiment that names it; weights that are
  // kept in the first call of any experiment that has several groups of them.
  const bool keeps_weights = cheat.name == "cache_of_converted_weights";
  EXPECT_TRUE(result.sentence.starts_with(cheat.accusation + ": ") || result.sentence.starts_with("wrong on ") ||
              (keeps_weights && result.sentence.find(": wrong values: ") != std::string::npos))
      << cheat.name << ": " << result.sentence;
  EXPECT_NE(std::get<HonestEvidence>(result.evidence).secret_seed, cheats::announced_seed);
}

INSTANTIATE_TEST_SUITE_P(Cheats, CheatInATournament, ::testing::Range<std::size_t>(0, tournament_cheats().size()),
                         [](const auto& tested) { return tournament_cheats()[tested.param].name; });

TEST(HonestGate, TwoTournamentsOfOneSeedAskWithDifferentData) {
  std::vector<std::uint64_t> seeds;
  for (int tournament = 0; tournament < 2; ++tournament) {
    cheats::CheatRig rig({});
    const GateResult result = judged(cheats::CheatContestant("honest", cheats::honest(60), rig), rig,
                                     suite_of(cheats::planted_problem(), true), *make_honest_gate());
    EXPECT_EQ(result.outcome, Outcome::passed) << result.sentence;
    seeds.push_back(std::get<HonestEvidence>(result.evidence).secret_seed);
  }
  EXPECT_NE(seeds[0], seeds[1]);
}

/// What a contestant can tell of how it is called.
struct Noticed {
  std::size_t max_sets = 0;
  std::set<std::size_t> batches;  ///< calls after each rest
  std::set<std::int64_t> shapes;  ///< M
};

Noticed noticed_in(const Gate& gate, const Suite& suite) {
  cheats::CheatRig rig({.noise = 1e-4});
  Noticed noticed;
  std::size_t calls = 0;
  double last_s = 0;
  const cheats::Prepare noting = [&](const cheats::Stage& stage) -> cheats::Act {
    noticed.max_sets = std::max(noticed.max_sets, stage.sets->size());
    return [&, stage](std::size_t set, int number) {
      if (stage.clock->now_s() - last_s > 0.015) {
        noticed.batches.insert(calls);
        calls = 0;
      }
      ++calls;
      noticed.shapes.insert(dual_gemm(stage.problem).m);
      honest_kernel(stage.call(set, number));
      last_s = stage.clock->now_s() + 20e-6;
      return 21.0;
    };
  };
  const cheats::CheatContestant one("one", noting, rig);
  const cheats::CheatContestant other("other", cheats::honest(21), rig);
  Progress progress = Progress::silent();
  Match match{suite, one, other, nullptr, rig, cheats::announced_seed, {.budget_s = 1, .max_rounds = 12}, progress};
  const GateResult result = gate.judge(match);
  EXPECT_EQ(result.outcome, Outcome::passed) << result.sentence;
  return noticed;
}

/// The planted problem with a change.
template <class Change>
Problem planted_with(const Change& change) {
  DualGemmProblem problem = dual_gemm(cheats::planted_problem());
  change(problem);
  return problem_of(problem);
}

TEST(HonestGate, NothingTellsItsCallsFromThoseThatAreTimed) {
  const Problem large = planted_with([](DualGemmProblem& problem) { problem.m = 64; });
  const Suite suite = suite_of(large, true);
  std::map<GateKind, Noticed> noticed;
  for (const std::unique_ptr<Gate>& gate : standard_gates()) {
    if (gate->kind() == GateKind::correct || gate->kind() == GateKind::honest || gate->kind() == GateKind::timed) {
      noticed[gate->kind()] = noticed_in(*gate, suite);
    }
  }
  const Noticed& timed = noticed[GateKind::timed];
  ASSERT_FALSE(timed.batches.empty());
  const std::size_t sample = 5;  // of 21 us, on a clock that wants 100
  EXPECT_TRUE(timed.batches.contains(sample));
  for (const GateKind kind : {GateKind::correct, GateKind::honest}) {
    EXPECT_EQ(noticed[kind].max_sets, timed.max_sets) << name(kind);
    EXPECT_TRUE(noticed[kind].batches.contains(sample)) << name(kind);
    EXPECT_TRUE(noticed[kind].shapes.contains(64)) << name(kind) << " asks about the suite's own shape";
  }
}

TEST(HonestGate, ALargeProblemIsAskedAboutInASmallerShapeOfTheSameFormats) {
  const Problem large = planted_with([](DualGemmProblem& problem) {
    problem.m = 256;
    problem.n = 3072;
    problem.k = 4096;
  });
  cheats::CheatRig rig({});
  Problem asked = large;
  const cheats::Prepare noting = [&](const cheats::Stage& stage) -> cheats::Act {
    asked = stage.problem;
    throw Error(ErrorCode::unsupported, "seen enough");
  };
  const GateResult result =
      judged(cheats::CheatContestant("noting", noting, rig), rig, suite_of(large, false), *make_honest_gate());
  EXPECT_EQ(result.outcome, Outcome::failed);
  EXPECT_NE(result.sentence.find(label(asked)), std::string::npos) << result.sentence;
  const DualGemmProblem& gemm = dual_gemm(asked);
  EXPECT_LE(4.0 * static_cast<double>(gemm.m * gemm.n * gemm.k), 5e7);
  EXPECT_GE(std::min({gemm.m, gemm.n, gemm.k}), 64);
  EXPECT_EQ(gemm.a, dual_gemm(large).a);
  EXPECT_EQ(gemm.out, dual_gemm(large).out);
}

/// Contestants whose work is honest, on one fake machine.
class HonestRegistry final : public Registry {
 public:
  HonestRegistry(cheats::CheatRig& rig, double us) : rig_(rig), us_(us) {}
  std::vector<std::string> strategies(const std::string&) const override { return {"plain", "fast"}; }
  std::unique_ptr<Contestant> create(const ContestantSpec& spec) const override {
    return std::make_unique<cheats::CheatContestant>(spec.strategy,
                                                     cheats::honest(spec.strategy == "fast" ? us_ / 2 : us_), rig_);
  }

 private:
  cheats::CheatRig& rig_;
  double us_;
};

TEST(HonestGate, NoHonestContestantIsAccusedInAHundredTournaments) {
  const ScratchFolder folder;
  Ledger ledger(folder / "ledger.sqlite", Ledger::Access::write);
  for (int tournament = 0; tournament < 100; ++tournament) {
    const auto seed = static_cast<std::uint64_t>(tournament) + 1;
    cheats::CheatRig rig(cheats::machine_of(tournament), seed);
    const HonestRegistry registry(rig, 10.0 + 12.0 * (tournament % 17));
    TournamentOptions options;
    options.suites = {suite_of(cheats::planted_problem(), tournament % 2 == 0)};
    options.seed = seed;
    options.seconds = 0.02;
    Progress progress = Progress::silent();
    const TournamentResult result = hold_tournament(options, rig, registry, ledger, progress);
    ASSERT_EQ(result.run.entries.size(), 2U);
    for (const Entry& entry : result.run.entries) {
      for (const GateResult& gate : entry.gates) {
        EXPECT_TRUE(gate.kind != GateKind::honest || gate.outcome == Outcome::passed)
            << "tournament " << tournament << ", " << entry.contestant << ": " << gate.sentence;
      }
    }
  }
}

}  // namespace
}  // namespace thresher::arena
