#include "arena/tournament.hpp"
#include "arena/ledger/merge.hpp"
#include "arena/report/run_json.hpp"
#include "arena/report/standings.hpp"
#include "arena/results/evidence_json.hpp"
#include "arena/results/record_json.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "arena/expect_error.hpp"
#include "arena/planted.hpp"
#include "support/scratch_folder.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

namespace fs = std::filesystem;

/// Contestants of the fake machine, by strategy.
class FakeRegistry final : public Registry {
 public:
  explicit FakeRegistry(FakeClock& clock) : clock_(clock) {}
  void add(const std::string& strategy, double us, Kernel kernel = honest_kernel) {
    order_.push_back(strategy);
    kernels_[strategy] = {us, std::move(kernel)};
  }
  void lead_with(const std::string& strategy) {
    order_.erase(std::find(order_.begin(), order_.end(), strategy));
    order_.insert(order_.begin(), strategy);
  }
  std::vector<std::string> strategies(const std::string&) const override { return order_; }
  std::unique_ptr<Contestant> create(const ContestantSpec& spec) const override {
    const auto found = kernels_.find(spec.strategy);
    if (found == kernels_.end()) {
      throw Error(ErrorCode::invalid_argument, "there is no " + spec.strategy);
    }
    return std::make_unique<PlantedContestant>(spec.strategy, found->second.second, &clock_, found->second.first);
  }

 private:
  FakeClock& clock_;
  std::vector<std::string> order_;
  std::map<std::string, std::pair<double, Kernel>> kernels_;
};

constexpr const char* suite_text = R"(title = "Small"
operation = "dual_gemm"
distributions = ["contest", "integers"]
[defaults]
a = "nvfp4"
b = "nvfp4"
out = "fp16"
[[problem]]
m = [7, 8]
n = 24
k = 32
)";

class TournamentTest : public ::testing::Test {
 protected:
  TournamentTest() {
    options_.suites = {parse_suite(suite_text, "small", "small.toml")};
    options_.seed = 5;
    options_.seconds = 0.4;
    registry_.add("plain", 1000);
    registry_.add("fast", 800);
    registry_.add("slow", 1300);
  }

  TournamentResult hold() {
    Ledger ledger(folder_ / "ledger.sqlite", Ledger::Access::write);
    Progress progress = Progress::silent();
    return hold_tournament(options_, rig_, registry_, ledger, progress);
  }

  static const Entry& entry(const RunRecord& run, const std::string& strategy) {
    for (const Entry& candidate : run.entries) {
      if (candidate.contestant == "dual_gemm/" + strategy) {
        return candidate;
      }
    }
    throw std::runtime_error("no entry of " + strategy);
  }

  ScratchFolder folder_;
  FakeRig rig_{{.noise = 0.005}};
  FakeRegistry registry_{rig_.fake_clock()};
  TournamentOptions options_;
};

TEST_F(TournamentTest, RanksContestantsAndRecordsThem) {
  const TournamentResult result = hold();
  ASSERT_EQ(result.run.entries.size(), 3U);
  EXPECT_EQ(plain_verdict(entry(result.run, "plain")), "baseline");
  EXPECT_EQ(plain_verdict(entry(result.run, "fast")), "accepted");
  EXPECT_EQ(plain_verdict(entry(result.run, "slow")), "rejected");
  EXPECT_FALSE(result.any_gate_failed()) << "a rejection is a result";
  EXPECT_NEAR(entry(result.run, "fast").measurements[0].speedup.value, 1.25, 0.02);
  EXPECT_EQ(entry(result.run, "fast").measurements.size(), 2 * all_modes.size());

  const RunRecord kept = Ledger(folder_ / "ledger.sqlite", Ledger::Access::read).load(result.run.id);
  EXPECT_EQ(nlohmann::json::parse(to_json(kept))["entries"], nlohmann::json::parse(to_json(result.run))["entries"]);
  EXPECT_FALSE(kept.ended.empty());

  const std::string text = standings(result.run);
  EXPECT_LT(text.find("dual_gemm/fast"), text.find("dual_gemm/plain"));
  EXPECT_LT(text.find("dual_gemm/plain"), text.find("dual_gemm/slow"));
}

/// A heading without formats beside one with them would say that its problem has none.
TEST_F(TournamentTest, StandingsNameAllProblemsAlike) {
  RunRecord run = hold().run;
  const auto line_of_headings = [&] {
    const std::string text = standings(run);
    const std::size_t begin = text.find("contestant");
    return text.substr(begin, text.find('\n', begin) - begin);
  };
  const auto name_problems = [&](const std::string& first, const std::string& other) {
    for (Entry& entry : run.entries) {
      const std::string name_of_first = entry.measurements.front().problem;
      for (Measurement& measurement : entry.measurements) {
        measurement.problem = measurement.problem == name_of_first ? first : other;
      }
      entry.measurements.push_back(entry.measurements.front());
      entry.measurements.back().problem = "9x8x16 fp16*fp16->fp16";
    }
  };
  name_problems("1x8x16 fp16*fp16->fp16", "2x8x16 fp16*fp16->fp16");
  EXPECT_EQ(line_of_headings().find("fp16"), std::string::npos) << line_of_headings();
  name_problems("1x8x16 fp16*fp16->fp16", "1x8x16 fp16*fp16->bf16");
  EXPECT_NE(line_of_headings().find("9x8x16 fp16*fp16->fp16"), std::string::npos) << line_of_headings();
}

TEST_F(TournamentTest, EveryGateIsThereInOrderAndTheUnjudgedSayWhy) {
  const TournamentResult result = hold();
  const Entry& fast = entry(result.run, "fast");
  ASSERT_EQ(fast.gates.size(), all_gates.size());
  for (std::size_t place = 0; place < all_gates.size(); ++place) {
    const GateResult& gate = fast.gates[place];
    EXPECT_EQ(gate.kind, all_gates[place].kind) << name(gate.kind);
    EXPECT_FALSE(gate.sentence.empty()) << name(gate.kind);
    EXPECT_TRUE(nlohmann::json::parse(to_json(gate.evidence)).is_object()) << name(gate.kind);
    const bool is_of_a_gpu = gate.kind == GateKind::audited || gate.kind == GateKind::race_free;
    EXPECT_EQ(gate.outcome, is_of_a_gpu ? Outcome::not_judged : Outcome::passed) << name(gate.kind);
  }
}

TEST_F(TournamentTest, AWrongKernelStopsAtItsGateAndTheOthersGoOn) {
  registry_.add("wrong", 10, [](const KernelCall& call) {
    KernelCall swapped = call;
    std::swap(swapped.b1, swapped.b2);
    honest_kernel(swapped);
  });
  const TournamentResult result = hold();
  const Entry& wrong = entry(result.run, "wrong");
  EXPECT_EQ(plain_verdict(wrong), "failed at correct");
  EXPECT_NE(wrong.sentence.find("gate and up swapped"), std::string::npos) << wrong.sentence;
  EXPECT_TRUE(wrong.measurements.empty()) << "a wrong kernel is not timed";
  EXPECT_EQ(wrong.gates.back().outcome, Outcome::skipped);
  EXPECT_TRUE(result.any_gate_failed());
  EXPECT_EQ(plain_verdict(entry(result.run, "fast")), "accepted");
}

TEST_F(TournamentTest, AClockThatLiesGivesNoVerdict) {
  FakeRig liar({.noise = 0.01, .lie = [](double us) { return us * 3; }});
  FakeRegistry registry(liar.fake_clock());
  registry.add("plain", 1000);
  registry.add("fast", 800);
  Ledger ledger(folder_ / "ledger.sqlite", Ledger::Access::write);
  Progress progress = Progress::silent();
  const TournamentResult result = hold_tournament(options_, liar, registry, ledger, progress);
  const Entry& fast = entry(result.run, "fast");
  EXPECT_EQ(plain_verdict(fast), "not judged");
  EXPECT_NE(fast.sentence.find("the clock cannot be trusted"), std::string::npos) << fast.sentence;
  EXPECT_TRUE(fast.measurements.empty());
}

TEST_F(TournamentTest, PitchesMeetTheBaselineTheyName) {
  options_.pitches = {parse_pitch(R"(title = "Slow is enough"
[contestant]
operation = "dual_gemm"
strategy = "fast"
[baseline]
strategy = "slow"
[claim]
speedup = [1.5, 1.7]
confidence = 0.9
reason = "arithmetic"
[accept]
geomean_speedup = 1.5
)",
                                  "p.toml")};
  const TournamentResult result = hold();
  ASSERT_EQ(result.run.entries.size(), 2U);
  EXPECT_EQ(plain_verdict(entry(result.run, "slow")), "baseline");
  const Entry& fast = entry(result.run, "fast");
  EXPECT_EQ(plain_verdict(fast), "accepted") << fast.sentence;
  EXPECT_NEAR(fast.measurements[0].speedup.value, 1.625, 0.03);
  EXPECT_EQ(nlohmann::json::parse(fast.pitch)["claim"]["speedup_high"], 1.7);
}

/// Looks into the ledger while a contestant runs.
TEST_F(TournamentTest, PredictionsAreInTheLedgerBeforeAnythingIsTimed) {
  std::size_t frozen = 0;
  std::size_t measured = 99;
  registry_.add("two_pass", 900, [&](const KernelCall& call) {
    honest_kernel(call);
    if (frozen == 0) {
      const RunRecord so_far = Ledger(folder_ / "ledger.sqlite", Ledger::Access::read).load(1);
      frozen = so_far.predictions.size();
      measured = so_far.entries.size();
    }
  });
  registry_.lead_with("two_pass");
  options_.forecaster.device = &device_spec("H200");
  const TournamentResult result = hold();
  EXPECT_EQ(measured, 0U);
  EXPECT_EQ(frozen, 8U) << "four contestants on two problems";
  ASSERT_EQ(result.run.predictions.size(), 8U);
  EXPECT_TRUE(result.run.predictions[0].predicted_us);
  EXPECT_FALSE(result.run.predictions[2].predicted_us) << "the planner does not know what is planted";
  const Ledger ledger(folder_ / "ledger.sqlite", Ledger::Access::read);
  EXPECT_EQ(ledger.verify().faults, std::vector<std::string>{});
}

TEST_F(TournamentTest, ASuiteForCorrectnessIsNotTimed) {
  options_.suites[0].timed = false;
  const TournamentResult result = hold();
  EXPECT_EQ(plain_verdict(entry(result.run, "fast")), "not timed");
  EXPECT_TRUE(entry(result.run, "fast").measurements.empty());
  EXPECT_FALSE(result.any_gate_failed());
}

constexpr const char* mixed_suite = R"(title = "Mixed"
operation = "dual_gemm"
distributions = ["contest"]
[[problem]]
m = 7
n = 24
k = 32
a = ["fp16", "nvfp4"]
b = "nvfp4"
out = "fp16"
)";

TEST_F(TournamentTest, CorrectnessIsJudgedOnTheFormatsThatAContestantIsMadeFor) {
  options_.suites = {parse_suite(mixed_suite, "mixed", "mixed.toml")};
  options_.suites[0].timed = false;
  int half_precision_calls = 0;
  registry_.add("nvfp4_alone", 900, [&](const KernelCall& call) {
    half_precision_calls += call.problem.a == Format::fp16 ? 1 : 0;
    honest_kernel(call);
  });
  const TournamentResult result = hold();
  EXPECT_EQ(plain_verdict(entry(result.run, "nvfp4_alone")), "not timed");
  EXPECT_EQ(half_precision_calls, 0);
  EXPECT_NE(entry(result.run, "nvfp4_alone").gates[0].sentence.find("judged on 1 of the suite's 2 problems"),
            std::string::npos);
  EXPECT_EQ(entry(result.run, "fast").gates[0].sentence.find("judged on"), std::string::npos);
}

/// Nobody is timed against it there.
TEST_F(TournamentTest, ASuiteOfManyFormatsThatIsNotTimedNeedsNoBaselineForAllOfThem) {
  options_.suites = {parse_suite(mixed_suite, "mixed", "mixed.toml")};
  options_.suites[0].timed = false;
  registry_.add("nvfp4_alone", 900);
  registry_.lead_with("nvfp4_alone");
  const RunRecord run = hold().run;
  EXPECT_EQ(entry(run, "fast").baseline, "dual_gemm/nvfp4_alone");
  EXPECT_EQ(verdict_text(entry(run, "fast")), "not timed") << entry(run, "fast").sentence;
}

TEST_F(TournamentTest, AStrategyForOtherFormatsIsNotEntered) {
  options_.suites = {parse_suite(mixed_suite, "mixed", "mixed.toml")};
  registry_.add("nvfp4_alone", 900);
  registry_.lead_with("nvfp4_alone");
  const RunRecord run = hold().run;
  ASSERT_EQ(run.entries.size(), 3U) << "a timed suite is taken as a whole";
  EXPECT_EQ(plain_verdict(entry(run, "plain")), "baseline") << "the first that is entered";
  EXPECT_EQ(entry(run, "fast").baseline, "dual_gemm/plain");
}

TEST_F(TournamentTest, ASuiteWhoseFormatsNoStrategyTakesIsRefused) {
  options_.suites = {parse_suite(mixed_suite, "mixed", "mixed.toml")};
  FakeRegistry registry(rig_.fake_clock());
  registry.add("nvfp4_alone", 900);
  EXPECT_EQ(error_of([&] { check_field(options_, rig_.device(), registry); }),
            "suite mixed: no strategy of this device is made for its formats: it takes nvfp4 alone");
}

constexpr const char* pitch_of_two = R"(title = "x"
[contestant]
operation = "dual_gemm"
strategy = "CONTESTANT"
[baseline]
strategy = "BASELINE"
[claim]
speedup = 2
confidence = 1
reason = "none"
)";

Pitch pitch_of(const std::string& contestant, const std::string& baseline) {
  std::string text = pitch_of_two;
  text.replace(text.find("CONTESTANT"), 10, contestant);
  text.replace(text.find("BASELINE"), 8, baseline);
  return parse_pitch(text, "p.toml");
}

TEST_F(TournamentTest, AStrategyForOtherFormatsThatIsNamedHasNotFailed) {
  options_.suites = {parse_suite(mixed_suite, "mixed", "mixed.toml")};
  registry_.add("nvfp4_alone", 900);
  options_.pitches = {pitch_of("nvfp4_alone", "plain")};
  const TournamentResult result = hold();
  const Entry& named = entry(result.run, "nvfp4_alone");
  EXPECT_EQ(verdict_text(named), "not for these formats");
  EXPECT_EQ(named.sentence, "it takes nvfp4 alone");
  EXPECT_EQ(named.gates.front().outcome, Outcome::skipped);
  EXPECT_FALSE(result.any_gate_failed());
  EXPECT_NE(standings(result.run).find("dual_gemm/nvfp4_alone: not for these formats: it takes nvfp4 alone"),
            std::string::npos);
  const RunRecord kept = Ledger(folder_ / "ledger.sqlite", Ledger::Access::read).load(result.run.id);
  EXPECT_EQ(entry(kept, "nvfp4_alone").verdict, Verdict::unsupported_format);
}

TEST_F(TournamentTest, AMatchThatTakesLongerThanItMayIsNotJudged) {
  options_.match_seconds = 0.2;
  const TournamentResult result = hold();
  for (const Entry& over : result.run.entries) {
    EXPECT_EQ(plain_verdict(over), "not judged") << over.contestant;
    EXPECT_NE(over.sentence.find("longer than the 0.2 s that it may (--match-seconds)"), std::string::npos)
        << over.sentence;
    const auto first = std::find_if(over.gates.begin(), over.gates.end(),
                                    [&](const GateResult& gate) { return gate.sentence == over.sentence; });
    ASSERT_NE(first, over.gates.end());
    EXPECT_EQ(first->outcome, Outcome::not_judged);
    EXPECT_TRUE(std::all_of(first + 1, over.gates.end(), [](const GateResult& gate) {
      return gate.outcome == Outcome::skipped && gate.sentence == "the match's time is over";
    }));
  }
  EXPECT_EQ(nlohmann::json::parse(result.run.arguments)["match_seconds"], 0.2);
  EXPECT_FALSE(result.any_gate_failed());
}

TEST_F(TournamentTest, AMatchHasTimeOfItsOwn) {
  options_.match_seconds = 60;
  const TournamentResult result = hold();
  EXPECT_EQ(plain_verdict(entry(result.run, "fast")), "accepted");
  EXPECT_EQ(plain_verdict(entry(result.run, "slow")), "rejected");
}

TEST_F(TournamentTest, ACallMayTakeNoLongerThanItsHostSays) {
  std::ofstream(folder_ / "mine.cpp") << "extern \"C\" void mine(const void*) {}";
  const auto asks_for = [&](const std::string& limit) {
    const std::string table = "[kernel]\nsource = \"mine.cpp\"\nentry = \"mine\"\n" + limit;
    std::string text = pitch_of_two;
    text.replace(text.find("CONTESTANT"), 10, "mine").replace(text.find("BASELINE"), 8, "plain");
    options_.pitches = {parse_pitch(text + table, (folder_ / "p.toml").string())};
    check_field(options_, Device::cpu(), registry_);
  };
  EXPECT_NO_THROW(asks_for(""));
  EXPECT_NO_THROW(asks_for("time_limit_s = 60"));
  const auto expect_refused = [&](const std::string& limit, const std::string& words) {
    const std::string said = error_of([&] { asks_for(limit); });
    EXPECT_NE(said.find(words), std::string::npos) << said;
  };
  expect_refused("time_limit_s = 61", "p.toml asks for 61 s for one call (time_limit_s), and here one may take 60 s");
  options_.call_seconds = 5;
  EXPECT_NO_THROW(asks_for(""));
  expect_refused("time_limit_s = 6", "and here one may take 5 s");
  options_.call_seconds = 86'400;
  EXPECT_NO_THROW(asks_for("time_limit_s = 86400"));
}

TEST_F(TournamentTest, ABaselineForOtherFormatsGivesNoVerdict) {
  options_.suites = {parse_suite(mixed_suite, "mixed", "mixed.toml")};
  registry_.add("nvfp4_alone", 900);
  options_.pitches = {pitch_of("fast", "nvfp4_alone")};
  const TournamentResult result = hold();
  EXPECT_EQ(verdict_text(entry(result.run, "fast")), "not judged");
  EXPECT_EQ(entry(result.run, "fast").sentence,
            "without times: the baseline dual_gemm/nvfp4_alone is not for these formats: it takes nvfp4 alone");
  EXPECT_FALSE(result.any_gate_failed());
}

TEST_F(TournamentTest, GoesOnWhereItWasKilled) {
  int calls = 0;
  registry_.add("dies", 1000, [&calls](const KernelCall& call) {
    honest_kernel(call);
    if (++calls == 3) {
      throw std::runtime_error("as if killed");
    }
  });
  EXPECT_THROW(hold(), std::runtime_error);
  options_.resume = true;
  const TournamentResult result = hold();
  EXPECT_EQ(result.run.id, 1);
  ASSERT_EQ(result.run.entries.size(), 4U);
  EXPECT_EQ(plain_verdict(entry(result.run, "dies")), "within noise");
  const RunRecord kept = Ledger(folder_ / "ledger.sqlite", Ledger::Access::read).load(1);
  EXPECT_EQ(kept.entries.size(), 4U);
  EXPECT_NE(error_of([&] { (void)hold(); }).find("--resume: ledger"), std::string::npos) << "nothing is left to resume";
}

TEST_F(TournamentTest, ResumesNothingElse) {
  registry_.add("dies", 1000, [](const KernelCall&) { throw std::runtime_error("as if killed"); });
  EXPECT_THROW(hold(), std::runtime_error);
  options_.resume = true;
  options_.seed = 6;
  EXPECT_EQ(error_of([&] { (void)hold(); }), "--resume: the unfinished run 1 has seed 5, not 6: leave --seed out");
  options_.seed.reset();
  options_.seconds = 0.5;
  EXPECT_NE(error_of([&] { (void)hold(); }).find("holds no unfinished tournament of these"), std::string::npos);
}

/// Contestants by name, in their order.
std::vector<std::string> contestants(const RunRecord& run) {
  std::vector<std::string> names;
  for (const Entry& entry : run.entries) {
    names.push_back(entry.contestant);
  }
  return names;
}

TEST_F(TournamentTest, AShardHoldsItsPairingsAndTheirBaselinesRow) {
  const RunRecord whole = hold().run;
  options_.shard = {1, 2};
  const RunRecord first = hold().run;
  options_.shard = {2, 2};
  const RunRecord second = hold().run;
  EXPECT_EQ(contestants(first), (std::vector<std::string>{"dual_gemm/plain", "dual_gemm/fast"}));
  EXPECT_EQ(contestants(second), (std::vector<std::string>{"dual_gemm/plain", "dual_gemm/slow"}));
  EXPECT_EQ(second.entries[1].ordinal, 2) << "its place in the whole tournament";
  ASSERT_TRUE(first.shard && second.shard);
  EXPECT_EQ(first.shard->matches, second.shard->matches);
  EXPECT_NE(first.key, second.key);

  const std::string kept = (folder_ / "ledger.sqlite").string();
  const Merged merged = merge_shards(folder_ / "all.sqlite", {kept}, false);
  const RunRecord all = Ledger(folder_ / "all.sqlite", Ledger::Access::read).load(merged.run.id);
  EXPECT_EQ(contestants(all), contestants(whole));
  EXPECT_EQ(machine_from_json(all.entries[2].context.machine).name, host_name());
  EXPECT_EQ(machine_from_json(whole.context.machine).name, "") << "what is not merged need not be told apart";
}

TEST_F(TournamentTest, AShardWithoutAMatchIsKeptAndSaysSo) {
  options_.shard = {2, 4};  // two pairings: shards 2 and 4 have one each
  EXPECT_EQ(hold().run.entries.size(), 2U);
  options_.shard = {1, 4};
  const TournamentResult result = hold();
  EXPECT_TRUE(result.run.entries.empty());
  EXPECT_EQ(standings(result.run), "shard 1/4 has no match: the tournament's 3 are all in other shards\n");
  EXPECT_FALSE(Ledger(folder_ / "ledger.sqlite", Ledger::Access::read).load(result.run.id).ended.empty());
}

TEST_F(TournamentTest, AShardGoesOnWhereItWasKilledAndNoOtherDoes) {
  int calls = 0;
  registry_.add("dies", 1000, [&calls](const KernelCall& call) {
    honest_kernel(call);
    if (++calls == 3) {
      throw std::runtime_error("as if killed");
    }
  });
  options_.shard = {2, 2};
  EXPECT_THROW(hold(), std::runtime_error);
  options_.resume = true;
  options_.shard = {1, 2};
  EXPECT_NE(error_of([&] { (void)hold(); }).find("holds no unfinished tournament of these"), std::string::npos);
  options_.shard.reset();
  EXPECT_NE(error_of([&] { (void)hold(); }).find("holds no unfinished tournament of these"), std::string::npos);
  options_.shard = {2, 2};
  options_.seed.reset();
  const TournamentResult result = hold();
  EXPECT_EQ(result.run.id, 1);
  EXPECT_EQ(result.run.seed, 5U);
  EXPECT_EQ(contestants(result.run), (std::vector<std::string>{"dual_gemm/plain", "dual_gemm/slow", "dual_gemm/dies"}));
}

TEST_F(TournamentTest, AShardDoesNotGoOnOnAnotherMachine) {
  options_.shard = {1, 1};
  {
    Ledger ledger(folder_ / "ledger.sqlite", Ledger::Access::write);
    Progress progress = Progress::silent();
    RunRecord elsewhere = hold_tournament(options_, rig_, registry_, ledger, progress).run;
    elsewhere.context.machine = R"({"cpu":"a fake machine","name":"elsewhere"})";
    (void)ledger.begin(elsewhere);
  }
  options_.resume = true;
  EXPECT_EQ(error_of([&] { (void)hold(); }),
            "--resume: shard 1/1 was begun on elsewhere, and this is " + host_name() +
                ": go on there, or start it anew here without --resume, since a shard is held on one machine");
}

TEST_F(TournamentTest, WhatDoesNotExistIsRefusedBeforeAnythingRuns) {
  options_.pitches = {pitch_of("imaginary", "plain")};
  EXPECT_EQ(error_of([&] { (void)hold(); }), "there is no imaginary");
  EXPECT_TRUE(Ledger(folder_ / "ledger.sqlite", Ledger::Access::read).runs().empty());
}

}  // namespace
}  // namespace thresher::arena
