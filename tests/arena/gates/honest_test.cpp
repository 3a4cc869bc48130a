// The gate `honest` as a tournament judges it: through every gate before it, with a seed of its own.
#include "arena/gates/honest.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

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
  EXPECT_TRUE(result.sentence.starts_with(cheat.accusation + ": ")) << cheat.name << ": " << result.sentence;
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

TEST(HonestGate, ALargeProblemIsAskedAboutInASmallerShapeOfTheSameFormats) {
  Problem large = cheats::planted_problem();
  dual_gemm(large).m = 256;
  dual_gemm(large).n = 3072;
  dual_gemm(large).k = 4096;
  cheats::CheatRig rig({});
  Problem asked = large;
  const cheats::Prepare noting = [&](const cheats::Stage& stage) -> cheats::Act {
    asked = stage.problem;
    throw Error(ErrorCode::unsupported, "seen enough");
  };
  const GateResult result =
      judged(cheats::CheatContestant("noting", noting, rig), rig, suite_of(large, true), *make_honest_gate());
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
