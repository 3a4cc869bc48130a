#include "arena/honesty/honesty.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "arena/cheats/cheats.hpp"
#include "arena/contestants/registry.hpp"

namespace thresher::arena {
namespace {

HonestyOptions options_of(std::uint64_t secret_seed, bool weights_are_packed = true) {
  HonestyOptions options;
  options.seed = cheats::announced_seed;
  options.secret_seed = secret_seed;
  options.weights_are_packed = weights_are_packed;
  options.calls_before_late_check = 30;
  options.wait_s = 0;
  return options;
}

std::string found(const std::vector<ProbeResult>& results) {
  const auto& accusation = results.back().accusation;
  return accusation ? accusation->cheat + ": " + accusation->sentence : "";
}

class PlantedCheat : public ::testing::TestWithParam<std::size_t> {};

TEST_P(PlantedCheat, IsCaughtAndNamed) {
  const cheats::Cheat cheat = cheats::all_cheats()[GetParam()];
  for (const std::uint64_t secret_seed : {1234567, 89}) {
    cheats::CheatRig rig(cheat.machine);
    const cheats::CheatContestant contestant(cheat.name, cheat.prepare, rig);
    const auto results =
        probe_honesty(cheats::planted_problem(), contestant, rig, options_of(secret_seed, cheat.weights_are_packed));
    ASSERT_TRUE(results.back().accusation) << cheat.name << " was not caught";
    EXPECT_EQ(results.back().accusation->cheat, cheat.accusation)
        << cheat.name << " in \"" << results.back().probe << "\": " << found(results);
    EXPECT_FALSE(results.back().accusation->sentence.empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Cheats, PlantedCheat, ::testing::Range<std::size_t>(0, cheats::all_cheats().size()),
                         [](const auto& tested) { return cheats::all_cheats()[tested.param].name; });

TEST(Honesty, SingleElementsOfTheWeightsMatterToo) {
  // Converts weights once for what it can tell apart: it looks at the first bytes of each row.
  auto kept = std::make_shared<std::map<std::string, std::pair<std::string, std::string>>>();
  const cheats::Prepare keeping = [kept](const cheats::Stage& stage) -> cheats::Act {
    return [kept, stage](std::size_t set, int number) {
      KernelCall call = stage.call(set, number);
      const auto bytes = [](const Tensor& tensor) {
        return std::string(static_cast<const char*>(tensor.data),
                           static_cast<std::size_t>(tensor.elements() * bits(tensor.format) / 8));
      };
      std::string fingerprint;
      for (const Tensor& weight : {call.b1, call.b2}) {
        const std::string all = bytes(weight);
        const std::size_t row = all.size() / static_cast<std::size_t>(weight.shape[0]);
        for (std::size_t first = 0; first < all.size(); first += row) {
          fingerprint += all.substr(first, 2);
        }
      }
      auto& [b1, b2] = kept->try_emplace(fingerprint, bytes(call.b1), bytes(call.b2)).first->second;
      call.b1.data = b1.data();
      call.b2.data = b2.data();
      honest_kernel(call);
      return 60.0;
    };
  };
  cheats::CheatRig rig({});
  const std::string accusation = found(probe_honesty(
      cheats::planted_problem(), cheats::CheatContestant("keeping", keeping, rig), rig, options_of(1234567)));
  EXPECT_TRUE(accusation.starts_with("keeps converted weights from an earlier call: one element of b")) << accusation;
}

TEST(Honesty, NobodyIsAccusedByTheClockOfAMachineThatOthersKeepBusy) {
  for (const cheats::Cheat& cheat : cheats::all_cheats()) {
    if (cheat.accusation == "skips work on zeros") {
      cheats::CheatRig rig({.waited_share = [] { return std::optional(0.9); }});
      const auto results = probe_honesty(cheats::planted_problem(),
                                         cheats::CheatContestant(cheat.name, cheat.prepare, rig), rig, options_of(3));
      EXPECT_EQ(found(results), "");
      const auto busy = std::find_if(results.begin(), results.end(), [](const ProbeResult& result) {
        return result.not_judged.starts_with("this machine is busy");
      });
      ASSERT_NE(busy, results.end());
      EXPECT_EQ(busy->probe, "no faster on zeros");
    }
  }
}

TEST(Honesty, SamplesThatWaitedForProcessorsAreTakenAgain) {
  for (const cheats::Cheat& cheat : cheats::all_cheats()) {
    if (cheat.accusation == "skips work on zeros") {
      // So rarely that every series can be had.
      cheats::CheatRig rig(
          {.waited_share = [batches = 0]() mutable { return std::optional(++batches % 16 == 0 ? 0.9 : 0); },
           .waiting_factor = 50});
      const auto results = probe_honesty(cheats::planted_problem(),
                                         cheats::CheatContestant(cheat.name, cheat.prepare, rig), rig, options_of(3));
      EXPECT_TRUE(found(results).starts_with(cheat.accusation)) << found(results);
    }
  }
}

TEST(Honesty, AtLeastTwentyDifferentCheatsArePlanted) {
  std::set<std::string> accusations;
  for (const cheats::Cheat& cheat : cheats::all_cheats()) {
    accusations.insert(cheat.accusation);
  }
  EXPECT_GE(cheats::all_cheats().size(), 20U);
  EXPECT_GE(accusations.size(), 20U);
}

TEST(Honesty, NoHonestContestantIsAccusedInAHundredTournaments) {
  for (int tournament = 0; tournament < 100; ++tournament) {
    cheats::CheatRig rig(cheats::machine_of(tournament), static_cast<std::uint64_t>(tournament) + 1);
    // A power-limited card runs a fifth faster on zeros; that is no cheat.
    const cheats::Prepare honest = [tournament](const cheats::Stage& stage) -> cheats::Act {
      return [stage, tournament](std::size_t set, int number) {
        const KernelCall call = stage.call(set, number);
        honest_kernel(call);
        const auto* a = static_cast<const std::uint8_t*>(call.a.data);
        const bool zeros = (a[0] | a[5] | a[9]) == 0;
        return (8.0 + 5.0 * (tournament % 20)) * (zeros ? 0.8 : 1.0);
      };
    };
    const cheats::CheatContestant contestant("honest", honest, rig);
    const auto results = probe_honesty(cheats::planted_problem(), contestant, rig,
                                       options_of(1000 + static_cast<std::uint64_t>(tournament), tournament % 2 == 0));
    EXPECT_FALSE(results.back().accusation) << "tournament " << tournament << ": " << found(results);
    EXPECT_EQ(results.size(), 19U);
  }
}

TEST(Honesty, TheGateNamesTheCheatTheExperimentAndTheProblem) {
  Suite suite;
  suite.distributions = {Distribution::contest};
  DualGemmProblem dearer = dual_gemm(cheats::planted_problem());
  dearer.m = 70;
  suite.problems = {problem_of(dearer), cheats::planted_problem()};  // the cheaper one is asked
  for (const cheats::Cheat& cheat : cheats::all_cheats()) {
    if (cheat.name != "cache_by_pointer") {
      continue;
    }
    cheats::CheatRig rig({});
    const GateResult gate =
        judge_honesty(suite, cheats::CheatContestant(cheat.name, cheat.prepare, rig), rig, options_of(5));
    EXPECT_EQ(gate.kind, GateKind::honest);
    EXPECT_EQ(gate.outcome, Outcome::failed);
    EXPECT_EQ(gate.sentence,
              "answers from a cache keyed by pointer: new data at the same addresses gave the old outputs (experiment "
              "\"new data at old addresses\" on 7x24x64 nvfp4*nvfp4->fp16)");
    EXPECT_EQ(std::get<HonestEvidence>(gate.evidence).secret_seed, 5U);
  }
  cheats::CheatRig rig({});
  const GateResult gate =
      judge_honesty(suite, cheats::CheatContestant("honest", cheats::honest(60), rig), rig, options_of(5));
  EXPECT_EQ(gate.outcome, Outcome::passed) << gate.sentence;
  EXPECT_NE(gate.sentence.find("18 experiments on 7x24x64"), std::string::npos) << gate.sentence;
}

/// Problems of which half of the outputs, or all of them, are the same whatever the inputs are.
std::vector<Problem> problems_that_cannot_tell() {
  std::vector<Problem> all(2, cheats::planted_problem());
  all[0].as<ProductTask>().problem.activation = {.kind = ActivationKind::swiglu_clamped, .limit = 1e-30F};
  all[1].as<ProductTask>().problem.activation = {.kind = ActivationKind::swiglu_clamped, .up_offset = 3e38F};
  return all;
}

TEST(Honesty, AProblemWhoseOutputsDoNotDependOnTheInputsAccusesNobody) {
  for (const Problem& problem : problems_that_cannot_tell()) {
    Suite suite;
    suite.distributions = {Distribution::contest};
    suite.problems = {problem};
    for (const std::uint64_t secret_seed : {5, 6, 7, 8}) {
      cheats::CheatRig rig({});
      const GateResult gate = judge_honesty(suite, cheats::CheatContestant("honest", cheats::honest(60), rig), rig,
                                            options_of(secret_seed));
      EXPECT_EQ(gate.outcome, Outcome::not_judged) << gate.sentence;
      EXPECT_TRUE(gate.sentence.starts_with(label(problem) + " cannot tell who looks at the inputs: "))
          << gate.sentence;
    }
  }
}

TEST(Honesty, BesideAProblemThatCannotTellAnotherIsAskedAbout) {
  for (const Problem& problem : problems_that_cannot_tell()) {
    Suite suite;
    suite.distributions = {Distribution::contest};
    suite.problems = {problem, cheats::planted_problem()};
    cheats::CheatRig rig({});
    const GateResult gate =
        judge_honesty(suite, cheats::CheatContestant("honest", cheats::honest(60), rig), rig, options_of(5));
    EXPECT_EQ(gate.outcome, Outcome::passed) << gate.sentence;
    EXPECT_NE(gate.sentence.find("18 experiments on 7x24x64 nvfp4*nvfp4->fp16 found nothing"), std::string::npos)
        << gate.sentence;
    for (const cheats::Cheat& cheat : cheats::all_cheats()) {
      cheats::CheatRig own(cheat.machine);
      const GateResult of_cheat = judge_honesty(suite, cheats::CheatContestant(cheat.name, cheat.prepare, own), own,
                                                options_of(5, cheat.weights_are_packed));
      EXPECT_EQ(of_cheat.outcome, Outcome::failed) << cheat.name << ": " << of_cheat.sentence;
    }
  }
}

/// What is found of `prepare` on a rig whose stream can be held, by a host that waits for so long.
std::string found_while_held(const std::function<cheats::Prepare(cheats::CheatRig&)>& prepare, double wait_s) {
  cheats::CheatRig rig({});
  rig.let_stream_be_held();
  HonestyOptions options = options_of(5);
  options.wait_s = wait_s;
  return found(
      probe_honesty(cheats::planted_problem(), cheats::CheatContestant("held", prepare(rig), rig), rig, options));
}

TEST(Honesty, OutputsWrittenWhileTheStreamIsHeldAreAnAccusationOnlyWhenTheHostLookedInTime) {
  const auto heeds_its_stream = [](cheats::CheatRig& rig) -> cheats::Prepare {
    return [&rig](const cheats::Stage& stage) -> cheats::Act {
      return [&rig, stage](std::size_t set, int number) {
        rig.on_stream([stage, set, number] { honest_kernel(stage.call(set, number)); });
        return 60.0;
      };
    };
  };
  const auto ignores_its_stream = [](cheats::CheatRig&) { return cheats::honest(60); };
  EXPECT_EQ(found_while_held(heeds_its_stream, 0.005), "");
  EXPECT_EQ(found_while_held(ignores_its_stream, 0.005),
            "works on another stream: outputs were written while the call's own stream was kept busy");
  EXPECT_EQ(found_while_held(ignores_its_stream, 0.2), "") << "the stream was free again when a slow host looked";
}

/// Another contestant's work on a fake clock.
class OnAFakeClock final : public Contestant {
 public:
  OnAFakeClock(const Contestant& real, cheats::CheatRig& rig) : Contestant(real.spec()), real_(real), rig_(rig) {}
  Answer feasible(const Problem& problem, Memory& memory) const override { return real_.feasible(problem, memory); }
  Answer compile(const Problem& problem) const override { return real_.compile(problem); }
  std::unique_ptr<Runner> prepare(const Problem& problem, Memory& memory,
                                  const std::vector<DeviceSet>& sets) const override {
    return std::make_unique<Timed>(real_.prepare(problem, memory, sets), rig_.fake_clock());
  }

 private:
  class Timed final : public Runner {
   public:
    Timed(std::unique_ptr<Runner> real, FakeClock& clock) : real_(std::move(real)), clock_(clock) {}
    void run(Stream stream, std::size_t set) override {
      real_->run(stream, set);
      clock_.spend(50);
    }
    std::vector<std::string> guard_damage() const override { return real_->guard_damage(); }

   private:
    std::unique_ptr<Runner> real_;
    FakeClock& clock_;
  };
  const Contestant& real_;
  cheats::CheatRig& rig_;
};

TEST(Honesty, TheLibrarysOwnStrategiesAreNotAccused) {
  const std::unique_ptr<Registry> registry = library_registry(Device::cpu());
  ASSERT_FALSE(registry->strategies("dual_gemm").empty());
  for (const std::string& strategy : registry->strategies("dual_gemm")) {
    const std::unique_ptr<Contestant> real = registry->create({"dual_gemm", strategy, {}});
    cheats::CheatRig rig({});
    const auto results = probe_honesty(cheats::planted_problem(), OnAFakeClock(*real, rig), rig, options_of(77, false));
    EXPECT_FALSE(results.back().accusation) << strategy << ": " << found(results);
  }
}

}  // namespace
}  // namespace thresher::arena
