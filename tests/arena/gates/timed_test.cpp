// The gate `timed` on fake clocks: samples count only if their outputs hold, whatever the contestant tells apart.
#include "arena/gates/timed.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <cfenv>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>
#include <utility>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "arena/cheats/cheats.hpp"
#include "arena/gates/match.hpp"
#include "arena/gates/verified_calls.hpp"
#include "arena/results/evidence_json.hpp"

namespace thresher::arena {
namespace {

using cheats::Act;
using cheats::Prepare;
using cheats::Stage;

constexpr double work_us = 60;
constexpr double nothing_us = 6;

Suite suite_of(std::vector<Distribution> distributions) {
  Suite suite;
  suite.name = "planted";
  suite.distributions = std::move(distributions);
  suite.problems = {cheats::planted_problem()};
  return suite;
}

struct Timed {
  GateResult gate;
  double speedup = 0;  ///< in the cold burst; 0 where it was not measured
};

Timed timed(const Prepare& contestant, const Prepare& baseline = cheats::honest(work_us),
            std::vector<Distribution> distributions = {Distribution::contest}) {
  cheats::CheatRig rig({.noise = 0.01});
  const Suite suite = suite_of(std::move(distributions));
  const cheats::CheatContestant one("one", contestant, rig);
  const cheats::CheatContestant other("other", baseline, rig);
  Progress progress = Progress::silent();
  Match match{suite, one, other, nullptr, rig, 5, {.budget_s = 8, .max_rounds = 24}, progress};
  Timed result{make_timed_gate()->judge(match)};
  for (const Measurement& measurement : match.measurements) {
    if (measurement.mode == TimingMode::cold_burst && measurement.rounds > 0) {
      result.speedup = measurement.speedup.value;
    }
  }
  return result;
}

std::size_t bytes_of(const Tensor& tensor) {
  return static_cast<std::size_t>(tensor.elements() * bits(tensor.format) / 8);
}

const std::uint8_t* bytes(const Tensor& tensor) { return static_cast<const std::uint8_t*>(tensor.data); }

/// What `act` makes of each call.
Prepare calling(const std::function<double(const KernelCall&)>& act) {
  return [act](const Stage& stage) -> Act {
    return [stage, act](std::size_t set, int number) { return act(stage.call(set, number)); };
  };
}

double work(const KernelCall& call) {
  honest_kernel(call);
  return work_us;
}

void zero_activations(const KernelCall& call) { std::memset(call.a.data, 0, bytes_of(call.a)); }

/// Answers by `fingerprint` of a call.
Prepare cache(const std::function<std::string(const KernelCall&)>& fingerprint) {
  return [fingerprint](const Stage& stage) -> Act {
    auto kept = std::make_shared<std::map<std::string, std::string>>();
    return [stage, kept, fingerprint](std::size_t set, int number) {
      const KernelCall call = stage.call(set, number);
      const auto [found, is_new] = kept->try_emplace(fingerprint(call));
      if (is_new) {
        honest_kernel(call);
        found->second = {static_cast<const char*>(call.c.data), bytes_of(call.c)};
        return work_us;
      }
      std::memcpy(call.c.data, found->second.data(), found->second.size());
      return nothing_us;
    };
  };
}

struct Planted {
  const char* name;
  const char* sentence;  ///< a part of it
  Prepare prepare;
};

cpu_set_t judges_processors() {
  cpu_set_t processors;
  ::sched_getaffinity(0, sizeof(processors), &processors);
  return processors;
}

std::vector<Planted> cheats_of_timed_calls() {
  return {
      {"cache_by_magnitudes", "gives", cache([](const KernelCall& call) {
         std::string key(reinterpret_cast<const char*>(call.a.data), bytes_of(call.a));
         for (char& byte : key) {
           byte = static_cast<char>(byte & 0x77);
         }
         return key;
       })},
      {"cache_by_sum", "gives", cache([](const KernelCall& call) {
         unsigned sum = 0;
         for (std::size_t i = 0; i < bytes_of(call.a); ++i) {
           sum += bytes(call.a)[i];
         }
         return std::to_string(sum % 64);
       })},
      {"cache_by_buffer", "gives",
       cache([](const KernelCall& call) { return std::to_string(reinterpret_cast<std::uintptr_t>(call.c.data)); })},
      {"stops_after_some_calls", "was not written",
       calling([](const KernelCall& call) { return call.number > 40 ? nothing_us : work(call); })},
      // A single element tells that it was not written, and if all that are looked at were, the whole output is wrong.
      {"a_tenth_of_the_work_later", "of a sample: c[",
       [](const Stage& stage) -> Act {
         return [stage](std::size_t set, int number) {
           KernelCall call = stage.call(set, number);
           if (number > 40) {
             call.problem.m = 1;
             call.a.shape[0] = call.c.shape[0] = 1;
           }
           honest_kernel(call);
           return number > 40 ? nothing_us : work_us;
         };
       }},
      {"skips_one_row_later", "c[3, ", calling([](const KernelCall& call) {
         const std::size_t row_bytes = bytes_of(call.c) / 7;
         auto* const row = static_cast<char*>(call.c.data) + 3 * row_bytes;
         const std::string before(row, row_bytes);
         honest_kernel(call);
         if (call.number > 40) {
           std::memcpy(row, before.data(), row_bytes);
         }
         return work_us;
       })},
      {"works_where_it_knows_the_poison", "was not written",
       calling([](const KernelCall& call) { return bytes(call.c)[0] == first_poison ? work(call) : nothing_us; })},
      // An element that is looked at may be 0 all the same: then its input gives it away.
      {"zeros_its_inputs_first", " of a sample: ", calling([](const KernelCall& call) {
         zero_activations(call);
         honest_kernel(call);
         return nothing_us;
       })},
      {"zeros_its_inputs_afterwards", "its input a was written to", calling([](const KernelCall& call) {
         honest_kernel(call);
         zero_activations(call);
         return work_us;
       })},
      {"writes_its_weights", "",
       [](const Stage& stage) -> Act {
         const KernelCall call = stage.call(0, 0);
         static_cast<std::uint8_t*>(call.b2.data)[5] ^= 1U;
         return [stage](std::size_t set, int number) {
           KernelCall now = stage.call(set, number);
           if (now.b2.data != stage.call(0, 0).b2.data) {
             return work(now);
           }
           static_cast<std::uint8_t*>(now.b2.data)[5] ^= 1U;
           honest_kernel(now);
           static_cast<std::uint8_t*>(now.b2.data)[5] ^= 1U;
           return work_us;
         };
       }},
      {"writes_past_the_end", "past the end of c", calling([](const KernelCall& call) {
         honest_kernel(call);
         call.write(call.problem.m, 0, 1.0F);
         return work_us;
       })},
#if defined(__x86_64__)
      {"flushes_subnormals", "floating-point mode", calling([](const KernelCall& call) {
         honest_kernel(call);
         _mm_setcsr(_mm_getcsr() | 0x8040U);
         return work_us;
       })},
#endif
      {"rounds_upwards", "floating-point mode", calling([](const KernelCall& call) {
         honest_kernel(call);
         std::fesetround(FE_UPWARD);
         return work_us;
       })},
      {"binds_its_judge", "bound to other processors", calling([](const KernelCall& call) {
         honest_kernel(call);
         cpu_set_t processors = judges_processors();
         for (int first = 0; first < CPU_SETSIZE; ++first) {
           if (CPU_ISSET(first, &processors)) {
             CPU_CLR(first, &processors);
             break;
           }
         }
         ::sched_setaffinity(0, sizeof(processors), &processors);
         return work_us;
       })},
  };
}

class CheatOfTimedCalls : public ::testing::TestWithParam<std::size_t> {};

TEST_P(CheatOfTimedCalls, FailsWithASentence) {
  const Planted cheat = cheats_of_timed_calls()[GetParam()];
  const cpu_set_t processors = judges_processors();
  if (std::string(cheat.name) == "binds_its_judge" && CPU_COUNT(&processors) < 2) {
    GTEST_SKIP() << "one processor is all that there is";
  }
  const Timed result = timed(cheat.prepare);
  EXPECT_EQ(result.gate.outcome, Outcome::failed) << cheat.name;
  EXPECT_NE(result.gate.sentence.find(cheat.sentence), std::string::npos) << cheat.name << ": " << result.gate.sentence;
  EXPECT_TRUE(result.gate.sentence.starts_with("7x24x64 ")) << result.gate.sentence;
}

INSTANTIATE_TEST_SUITE_P(Cheats, CheatOfTimedCalls, ::testing::Range<std::size_t>(0, cheats_of_timed_calls().size()),
                         [](const auto& tested) { return std::string(cheats_of_timed_calls()[tested.param].name); });

TEST(TimedGate, WhatIsKeptForInputsGainsNothingAndIsFound) {
  const Prepare by_content = cache(
      [](const KernelCall& call) { return std::string(reinterpret_cast<const char*>(call.a.data), bytes_of(call.a)); });
  const Prepare by_row = cache([](const KernelCall& call) {
    return std::string(reinterpret_cast<const char*>(call.a.data), bytes_of(call.a) / 7);
  });
  int found = 0;
  for (const Prepare& keeping : {by_content, by_row, by_content, by_row, by_content, by_row}) {
    const Timed result = timed(keeping);
    if (result.gate.outcome == Outcome::failed) {
      ++found;
      EXPECT_TRUE(result.gate.sentence.find("it keeps answers") != std::string::npos ||
                  result.gate.sentence.find("gives") != std::string::npos)
          << result.gate.sentence;
    } else {
      EXPECT_NEAR(result.speedup, 1, 0.05);
    }
  }
  EXPECT_GE(found, 2) << "which samples are on inputs that were seen is drawn";
}

TEST(TimedGate, ABaselineThatDoesNotHoldIsNotTheContestantsFault) {
  const Prepare wrong_later =
      calling([](const KernelCall& call) { return call.number > 40 ? nothing_us : work(call); });
  const Timed result = timed(cheats::honest(work_us), wrong_later);
  EXPECT_EQ(result.gate.outcome, Outcome::not_judged) << result.gate.sentence;
  EXPECT_NE(result.gate.sentence.find("the baseline"), std::string::npos) << result.gate.sentence;
}

/// A match of equals on a machine, where the baseline's own row says so many microseconds a call; 0: it has none.
/// The timed gate and the verdict judge it.
Entry match_beside_own_row(const FakeMachine& machine, double own_us) {
  cheats::CheatRig rig(machine);
  const Suite suite = suite_of({Distribution::contest});
  const cheats::CheatContestant one("one", cheats::honest(work_us), rig);
  const cheats::CheatContestant other("other", cheats::honest(work_us), rig);
  Progress progress = Progress::silent();
  Match match{suite, one, other, nullptr, rig, 5, {.budget_s = 4, .patience = 2, .max_rounds = 12}, progress};
  Entry row;
  if (own_us > 0) {
    Measurement& measured = row.measurements.emplace_back();
    measured.problem = label(suite.problems.front());
    measured.rounds = min_rounds;
    measured.baseline_us = {own_us, own_us * 0.95, own_us * 1.05};
    match.baselines_row = &row;
  }
  std::vector<std::unique_ptr<Gate>> gates = standard_gates();
  std::erase_if(gates, [](const std::unique_ptr<Gate>& gate) {
    return gate->kind() != GateKind::timed && gate->kind() != GateKind::verdict;
  });
  return hold_match(match, gates, {});
}

GateResult timed_beside_own_row(const FakeMachine& machine, double own_us) {
  return match_beside_own_row(machine, own_us).gates.front();
}

TEST(TimedGate, ABaselineThatCrawlsBesideItsOwnRowSaysNothingOfOthers) {
  const GateResult crawls = timed_beside_own_row({.noise = 0.01}, work_us / 4);
  EXPECT_EQ(crawls.outcome, Outcome::not_judged) << crawls.sentence;
  EXPECT_NE(crawls.sentence.find(": the baseline was 4 times slower beside dual_gemm/one than alone ("),
            std::string::npos)
      << crawls.sentence;
  EXPECT_TRUE(crawls.sentence.ends_with("; the machine is probably busy, run again")) << crawls.sentence;
  for (const double own_us : {0.0, work_us / 1.5, work_us, work_us * 4}) {
    const GateResult as_ever = timed_beside_own_row({.noise = 0.01}, own_us);
    EXPECT_EQ(as_ever.outcome, Outcome::passed) << own_us << ": " << as_ever.sentence;
  }
}

TEST(TimedGate, ContestantThatIsNotJudgedHasNoSpeedup) {
  const Entry slow_baseline = match_beside_own_row({.noise = 0.01}, work_us / 4);
  EXPECT_EQ(slow_baseline.verdict, Verdict::not_judged) << slow_baseline.sentence;
  EXPECT_TRUE(slow_baseline.speedups.empty());
  EXPECT_FALSE(match_beside_own_row({.noise = 0.01}, work_us).speedups.empty());
}

TEST(TimedGate, NobodyIsJudgedOnAMachineThatOthersKeepBusy) {
  const auto always = [] { return std::optional(0.5); };
  const GateResult busy = timed_beside_own_row({.noise = 0.01, .waited_share = always}, 0);
  EXPECT_EQ(busy.outcome, Outcome::not_judged) << busy.sentence;
  EXPECT_NE(busy.sentence.find("this machine is busy"), std::string::npos) << busy.sentence;
  const nlohmann::json seen = nlohmann::json::parse(to_json(busy.evidence))["verification"].at(0);
  EXPECT_GT(seen.at("samples_that_waited"), 0);
}

TEST(TimedGate, WhoIsWrongInSamplesThatWaitedFailsAllTheSame) {
  bool waits = false;
  const Prepare wrong_when_it_waits =
      calling([&waits](const KernelCall& call) { return waits ? nothing_us : work(call); });
  cheats::CheatRig rig({.noise = 0.01, .waited_share = [&waits, batches = 0]() mutable {
                          const bool waited = std::exchange(waits, ++batches % 8 == 0);
                          return std::optional(waited ? 0.5 : 0);
                        }});
  const Suite suite = suite_of({Distribution::contest});
  const cheats::CheatContestant one("one", wrong_when_it_waits, rig);
  const cheats::CheatContestant other("other", cheats::honest(work_us), rig);
  Progress progress = Progress::silent();
  Match match{suite, one, other, nullptr, rig, 5, {.budget_s = 4, .max_rounds = 12}, progress};
  const GateResult gate = make_timed_gate()->judge(match);
  EXPECT_EQ(gate.outcome, Outcome::failed) << gate.sentence;
}

TEST(TimedGate, ABaselineThatContradictsItselfSaysNothingOfOthers) {
  // Slowed down until the contestant goes for the first time, and never again.
  auto alive = std::make_shared<std::weak_ptr<int>>();
  auto has_gone = std::make_shared<bool>(false);
  const Prepare honest = [alive](const Stage& stage) -> Act {
    auto token = std::make_shared<int>(0);
    *alive = token;
    return [stage, token](std::size_t set, int number) { return work(stage.call(set, number)); };
  };
  const Prepare slowed_once = [alive, has_gone](const Stage& stage) -> Act {
    return [stage, alive, has_gone, calls = 0](std::size_t set, int number) mutable {
      *has_gone = *has_gone || (++calls > 100 && alive->expired());
      return work(stage.call(set, number)) * (*has_gone ? 1 : 1.5);
    };
  };
  const Timed result = timed(honest, slowed_once);
  EXPECT_EQ(result.gate.outcome, Outcome::not_judged) << result.gate.sentence;
  EXPECT_NE(result.gate.sentence.find("contradict each other"), std::string::npos) << result.gate.sentence;
}

TEST(TimedGate, AShortcutForTheDistributionThatIsTimedIsFound) {
  const Prepare knows_contest = calling([](const KernelCall& call) {
    honest_kernel(call);
    for (std::size_t i = 0; i < bytes_of(call.a); ++i) {
      if ((bytes(call.a)[i] & 0x44U) != 0) {
        return work_us;
      }
    }
    return work_us / 2;
  });
  // In a suite that lists one distribution another is drawn all the same.
  for (const std::vector<Distribution>& listed :
       {std::vector{Distribution::contest, Distribution::full_range}, std::vector{Distribution::contest}}) {
    const Timed result = timed(knows_contest, cheats::honest(work_us), listed);
    EXPECT_EQ(result.gate.outcome, Outcome::failed);
    EXPECT_NE(result.gate.sentence.find("it depends on the data"), std::string::npos) << result.gate.sentence;
  }
}

TEST(TimedGate, WhoSlowsItsBaselineDownIsFoundWhenItHasGone) {
  auto alive = std::make_shared<std::weak_ptr<int>>();
  const Prepare slowing = [alive](const Stage& stage) -> Act {
    auto token = std::make_shared<int>(0);
    *alive = token;
    return [stage, token](std::size_t set, int number) { return work(stage.call(set, number)); };
  };
  const Prepare slowed = [alive](const Stage& stage) -> Act {
    return [stage, alive](std::size_t set, int number) {
      return work(stage.call(set, number)) * (alive->expired() ? 1 : 1.5);
    };
  };
  const Timed result = timed(slowing, slowed);
  EXPECT_EQ(result.gate.outcome, Outcome::failed);
  EXPECT_NE(result.gate.sentence.find("it slows its baseline down: "), std::string::npos) << result.gate.sentence;
}

TEST(TimedGate, HonestButUnusualContestantsPass) {
  const std::vector<Planted> unusual{
      {"tables at first use", "",
       [](const Stage& stage) -> Act {
         auto is_made = std::make_shared<bool>(false);
         return [stage, is_made](std::size_t set, int number) {
           const double table_us = std::exchange(*is_made, true) ? 0 : 3000;
           return work(stage.call(set, number)) + table_us;
         };
       }},
      {"tuning on the first calls", "",
       calling([](const KernelCall& call) { return work(call) * (call.number < 12 ? 1 + call.number % 4 : 0.9); })},
      {"a warm-up allocation", "",
       [](const Stage& stage) -> Act {
         auto workspace = std::make_shared<std::unique_ptr<GuardedBuffer>>();
         return [stage, workspace](std::size_t set, int number) {
           if (!*workspace) {
             *workspace = std::make_unique<GuardedBuffer>(*stage.memory, 1 << 12);
           }
           return work(stage.call(set, number));
         };
       }},
      {"a thread", "", calling([](const KernelCall& call) {
         std::thread([&call] { honest_kernel(call); }).join();
         return work_us;
       })},
      {"fast mathematics", "", calling([](const KernelCall& call) {
         std::vector<double> values = call.definition();
         for (double& value : values) {
           value *= 1 + 2e-4;
         }
         call.write_all(values);
         return 0.8 * work_us;
       })},
  };
  for (const Planted& one : unusual) {
    const Timed result = timed(one.prepare, cheats::honest(work_us), {Distribution::contest, Distribution::full_range});
    EXPECT_EQ(result.gate.outcome, Outcome::passed) << one.name << ": " << result.gate.sentence;
  }
}

TEST(TimedGate, DearLooksAreDrawnFromAllCallsAndAtPoisonFirst) {
  Random random(7);
  std::vector<bool> unwritten(40, false);
  EXPECT_EQ(calls_to_look_at(1e7, unwritten, random).size(), 40U);
  EXPECT_EQ(calls_to_look_at(1e8, unwritten, random).size(), 4U);
  std::set<std::size_t> drawn;
  for (int sample = 0; sample < 400; ++sample) {
    const std::vector<std::size_t> one = calls_to_look_at(1e9, unwritten, random);
    ASSERT_EQ(one.size(), 1U);
    drawn.insert(one.front());
  }
  EXPECT_EQ(drawn.size(), 40U);
  unwritten[13] = unwritten[31] = true;
  for (int sample = 0; sample < 20; ++sample) {
    const std::vector<std::size_t> some = calls_to_look_at(1e8, unwritten, random);
    EXPECT_EQ(some.size(), 4U);
    EXPECT_TRUE(std::is_sorted(some.begin(), some.end()));
    EXPECT_TRUE(std::binary_search(some.begin(), some.end(), 13U) && std::binary_search(some.begin(), some.end(), 31U));
  }
}

TEST(TimedGate, TheEvidenceTellsWhatWasLookedAt) {
  const Timed result = timed(cheats::honest(work_us / 2));
  EXPECT_NEAR(result.speedup, 2, 0.05);
  const nlohmann::json seen = nlohmann::json::parse(to_json(result.gate.evidence))["verification"].at(0);
  EXPECT_GT(seen.at("samples"), 50);
  EXPECT_GE(seen.at("calls"), seen.at("samples"));
  EXPECT_EQ(seen.at("calls_looked_at"), seen.at("calls"));
  EXPECT_GT(seen.at("whole_outputs"), 5);
  EXPECT_GT(seen.at("inputs_compared"), 50);
  EXPECT_TRUE(seen.contains("secret_seed"));
  EXPECT_TRUE(seen.contains("seconds_of_verification"));
}

TEST(TimedGate, HonestContestantsAreNotAccusedOnAnyMachine) {
  for (int tournament = 0; tournament < 25; ++tournament) {
    cheats::CheatRig rig(cheats::machine_of(tournament), static_cast<std::uint64_t>(tournament) + 1);
    const Suite suite = suite_of({Distribution::contest, Distribution::full_range, Distribution::integers});
    const cheats::CheatContestant one("one", cheats::honest(40), rig);
    const cheats::CheatContestant other("other", cheats::honest(50), rig);
    Progress progress = Progress::silent();
    Match match{suite, one, other, nullptr, rig, 5, {.budget_s = 0.3, .patience = 4, .max_rounds = 12}, progress};
    const GateResult gate = make_timed_gate()->judge(match);
    EXPECT_NE(gate.outcome, Outcome::failed) << "tournament " << tournament << ": " << gate.sentence;
  }
}

}  // namespace
}  // namespace thresher::arena
