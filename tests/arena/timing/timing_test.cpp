#include "arena/timing/timing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "arena/fake_clock.hpp"

namespace thresher::arena {
namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20;
const Rotation rotation{8, 30 * mebibyte, 60 * mebibyte, 1000 * mebibyte};

struct Outcome {
  Times times;
  Comparison comparison = Comparison::too_noisy;
  Estimate speedup;
};

/// The verdict of one mode on a machine, for a contestant and a baseline that take so long.
Outcome judge(const FakeMachine& machine, double contestant_us, double baseline_us, TimingMode mode, std::uint64_t seed,
              TimingOptions options = {}) {
  FakeClock clock(machine, seed);
  FakeRunner contestant(clock, contestant_us);
  FakeRunner baseline(clock, baseline_us);
  Random random(seed);
  Outcome outcome;
  outcome.times = time_against(&contestant, baseline, clock, rotation, options, random);
  const ModeTimes& times = outcome.times.mode(mode);
  if (outcome.times.clock_fault.empty() && times.rounds() > 0) {
    outcome.speedup = median_estimate(times.speedups(), random);
    outcome.comparison = compare(outcome.speedup, median_estimate(times.self_ratios(), random), times.rounds());
  }
  return outcome;
}

/// How often of 200 each comparison comes out.
std::array<int, 4> tally(const FakeMachine& machine, double contestant_us, double baseline_us, TimingMode mode) {
  std::array<int, 4> counts{};
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const Outcome outcome = judge(machine, contestant_us, baseline_us, mode, seed, {.budget_s = 2, .max_rounds = 15});
    ++counts[static_cast<std::size_t>(outcome.comparison)];
  }
  return counts;
}

constexpr auto faster = static_cast<std::size_t>(Comparison::faster);
constexpr auto slower = static_cast<std::size_t>(Comparison::slower);

TEST(Timing, FindsATrueDifferenceOnAQuietMachine) {
  const FakeMachine quiet{.noise = 0.005};
  for (const TimingMode mode : all_modes) {
    EXPECT_EQ(judge(quiet, 900, 1000, mode, 1).comparison, Comparison::faster) << name(mode);
    EXPECT_EQ(judge(quiet, 1100, 1000, mode, 1).comparison, Comparison::slower) << name(mode);
    EXPECT_EQ(judge(quiet, 1000, 1000, mode, 1).comparison, Comparison::same) << name(mode);
  }
}

TEST(Timing, NeverAWinnerInsideTheNoise) {
  for (const double noise : {0.01, 0.1, 0.5}) {
    const std::array<int, 4> counts = tally({.noise = noise}, 1000, 1000, TimingMode::cold_burst);
    EXPECT_LE(counts[faster] + counts[slower], 4) << noise;
  }
}

TEST(Timing, GoingOnWhileItIsTooNoisyMakesNoWinnersOfEquals) {
  int said = 0;
  int went_on = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const Outcome outcome = judge({.noise = 0.1}, 1000, 1000, TimingMode::cold_burst, seed,
                                  {.budget_s = 1.5, .patience = 4, .max_rounds = 10});
    said += outcome.comparison == Comparison::faster || outcome.comparison == Comparison::slower ? 1 : 0;
    went_on += outcome.times.mode(TimingMode::cold_burst).went_on ? 1 : 0;
  }
  EXPECT_LE(said, 10);
  EXPECT_GE(went_on, 150);
}

TEST(Timing, GoesOnUntilItCanSayAndNoLongerThanItsPatience) {
  const FakeMachine noisy{.noise = 0.08};
  const TimingOptions options{.budget_s = 1.5, .max_rounds = 8};
  TimingOptions patient = options;
  patient.patience = 4;
  int said_at_once = 0;
  int said = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    said_at_once += judge(noisy, 900, 1000, TimingMode::cold_burst, seed, options).comparison == Comparison::faster;
    const Outcome outcome = judge(noisy, 900, 1000, TimingMode::cold_burst, seed, patient);
    said += outcome.comparison == Comparison::faster;
    EXPECT_LE(outcome.times.sampled_s, 4 * patient.budget_s + 1);
    EXPECT_LE(outcome.times.mode(TimingMode::cold_burst).rounds(), 32);
  }
  EXPECT_GT(said, said_at_once);
  EXPECT_FALSE(
      judge({.noise = 0.005}, 900, 1000, TimingMode::cold_burst, 1, patient).times.mode(TimingMode::cold_burst).went_on)
      << "what is clear is not timed again";
}

TEST(Timing, DriftMakesNoWinnerAndHidesNone) {
  const FakeMachine drifting{.noise = 0.01, .drift_per_s = 0.5};
  const std::array<int, 4> equal = tally(drifting, 1000, 1000, TimingMode::cold_sustained);
  EXPECT_LE(equal[faster] + equal[slower], 4);
  EXPECT_GE(tally(drifting, 900, 1000, TimingMode::cold_sustained)[faster], 190);
}

TEST(Timing, ThrottlingMakesNoWinnerAndHidesNone) {
  const FakeMachine throttling{.noise = 0.01, .throttled_factor = 1.3, .heat_limit_s = 0.2};
  const std::array<int, 4> equal = tally(throttling, 1000, 1000, TimingMode::cold_sustained);
  EXPECT_LE(equal[faster] + equal[slower], 4);
  EXPECT_GE(tally(throttling, 900, 1000, TimingMode::cold_sustained)[faster], 190);
}

TEST(Timing, BurstAndSustainedAreApartOnAMachineThatThrottles) {
  const FakeMachine throttling{.noise = 0.005, .throttled_factor = 1.3, .heat_limit_s = 0.2};
  const Outcome outcome = judge(throttling, 1000, 1000, TimingMode::cold_burst, 5);
  EXPECT_NEAR(median(outcome.times.mode(TimingMode::cold_burst).baseline_us), 1000, 10);
  EXPECT_NEAR(median(outcome.times.mode(TimingMode::cold_sustained).baseline_us), 1300, 13);
  EXPECT_TRUE(outcome.times.mode(TimingMode::cold_burst).telemetry.front().throttle_reasons.empty());
  EXPECT_FALSE(outcome.times.mode(TimingMode::cold_sustained).telemetry.front().throttle_reasons.empty());
}

TEST(Timing, JumpsMakeNoWinner) {
  const FakeMachine jumping{.noise = 0.01, .jump_every_s = 0.05, .jump_factor = 1.6};
  const std::array<int, 4> equal = tally(jumping, 1000, 1000, TimingMode::cold_sustained);
  EXPECT_LE(equal[faster] + equal[slower], 4);
}

/// Every other batch waits, a hundred times as long as it works.
FakeMachine used_by_others() {
  return {.noise = 0.005,
          .waited_share = [batches = 0]() mutable { return std::optional(++batches % 2 == 0 ? 0.9 : 0); },
          .waiting_factor = 100};
}

TEST(Timing, SamplesThatWaitedForProcessorsAreTakenAgain) {
  const Outcome outcome = judge(used_by_others(), 900, 1000, TimingMode::cold_burst, 1, {.budget_s = 20});
  const ModeTimes& mode = outcome.times.mode(TimingMode::cold_burst);
  EXPECT_EQ(outcome.comparison, Comparison::faster);
  EXPECT_EQ(outcome.times.busy, "");
  EXPECT_GE(mode.rounds(), min_rounds);
  EXPECT_GT(mode.waited, 0U);
  for (const std::vector<double>* const samples : {&mode.baseline_us, &mode.baseline_again_us, &mode.contestant_us}) {
    for (const double us : *samples) {
      EXPECT_LT(us, 1200);
    }
  }
}

TEST(Timing, ABusyMachineIsGivenUpWithinTheLimit) {
  const auto always = [] { return std::optional(0.5); };
  for (const double patience : {1.0, 4.0}) {
    FakeClock clock({.noise = 0.01, .waited_share = always}, 1);
    FakeRunner contestant(clock, 1000);
    FakeRunner baseline(clock, 1100);
    Random random(1);
    const Times times =
        time_against(&contestant, baseline, clock, rotation, {.budget_s = 2, .patience = patience}, random);
    EXPECT_NE(times.busy.find("this machine is busy: in cold burst "), std::string::npos) << times.busy;
    EXPECT_EQ(times.mode(TimingMode::cold_burst).rounds(), 0);
    EXPECT_LE(clock.now_s(), 2 * patience + 0.5);
    EXPECT_GE(clock.now_s(), 2 * patience - 0.5) << "the clock keeps going up to its limit";
    for (const ModeTimes& mode : times.modes) {
      EXPECT_NE(mode.not_measured, "") << name(mode.mode);
    }
  }
}

TEST(Timing, ALittleWaitingAndAKernelThatDoesNotTellDropNothing) {
  for (const std::optional<double> told : {std::optional(max_waited_share), std::optional<double>()}) {
    const Outcome outcome = judge({.noise = 0.01, .waited_share = [told] { return told; }}, 1000, 1000,
                                  TimingMode::cold_burst, 1, {.budget_s = 2});
    EXPECT_EQ(outcome.times.mode(TimingMode::cold_burst).waited, 0U);
    EXPECT_EQ(outcome.times.busy, "");
  }
}

TEST(Timing, ALyingClockIsNotBelieved) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<std::function<double(double)>> lies{
      [](double) { return 0.0; },       [](double us) { return -us; },     [nan](double) { return nan; },
      [](double us) { return us * 2; }, [](double us) { return us / 10; }, [](double) { return 19'000.0; },
      [](double) { return 1.0 / 0.0; },
  };
  for (std::size_t i = 0; i < lies.size(); ++i) {
    const Outcome outcome = judge({.noise = 0.01, .lie = lies[i]}, 15'000, 20'000, TimingMode::cold_burst, 7);
    EXPECT_NE(outcome.times.clock_fault, "") << "lie " << i;
    EXPECT_EQ(outcome.times.modes.size(), all_modes.size());
  }
  EXPECT_EQ(judge({.noise = 0.01}, 15'000, 20'000, TimingMode::cold_burst, 7).times.clock_fault, "");
}

TEST(Timing, AClockThatStandsStillIsNotBelieved) {
  const Outcome outcome = judge({}, 1000, 1000, TimingMode::cold_burst, 7);
  EXPECT_NE(outcome.times.clock_fault.find("different readings"), std::string::npos) << outcome.times.clock_fault;
}

TEST(Timing, ColdCallsUseSetsInTurnAndWarmCallsOne) {
  FakeClock clock({.noise = 0.01}, 1);
  FakeRunner contestant(clock, 1000);
  FakeRunner baseline(clock, 1000);
  Random random(1);
  (void)time_against(&contestant, baseline, clock, rotation, {.budget_s = 0.3, .rest_s = 0}, random);
  const std::set<std::size_t> used(contestant.sets_used.begin(), contestant.sets_used.end());
  EXPECT_EQ(used.size(), rotation.num_sets);
  for (const std::size_t set : used) {
    EXPECT_LT(set, rotation.num_sets);
  }
}

TEST(Timing, RolesShareOneRotation) {
  FakeClock clock({.noise = 0.01}, 1);
  std::vector<std::size_t> order;
  class Recorder final : public Runner {
   public:
    Recorder(FakeClock& the_clock, std::vector<std::size_t>& all) : clock_(the_clock), all_(all) {}
    void run(Stream, std::size_t set) override {
      all_.push_back(set);
      clock_.spend(1000);
    }

   private:
    FakeClock& clock_;
    std::vector<std::size_t>& all_;
  };
  Recorder contestant(clock, order);
  Recorder baseline(clock, order);
  Random random(1);
  const Times times = time_against(&contestant, baseline, clock, rotation, {.budget_s = 0.05, .rest_s = 0}, random);
  const auto cold_calls = 4 + static_cast<std::size_t>(times.mode(TimingMode::cold_burst).rounds()) * 3;
  ASSERT_GE(order.size(), cold_calls);
  for (std::size_t call = 0; call < cold_calls; ++call) {
    EXPECT_EQ(order[call], call % rotation.num_sets) << "call " << call;
  }
}

/// What is done for a sample, in order.
class Diary final : public Attendant {
 public:
  void prepare(Role, const Batch& batch, bool) override { entries.push_back("prepare " + first_of(batch)); }
  void make(Role, const Batch& batch) override { entries.push_back("make " + first_of(batch)); }
  void put_in_inputs(Role, const Batch& batch) override { entries.push_back("hand over " + first_of(batch)); }
  std::string inspect(Role, const Batch& batch, bool) override {
    entries.push_back("inspect " + first_of(batch));
    return {};
  }
  void call(std::size_t set) { entries.push_back("call " + std::to_string(set)); }

  std::vector<std::string> entries;

 private:
  static std::string first_of(const Batch& batch) { return std::to_string(batch.set_of(0)); }
};

class Noted final : public Runner {
 public:
  Noted(FakeClock& clock, Diary& diary) : clock_(clock), diary_(diary) {}
  void run(Stream, std::size_t set) override {
    diary_.call(set);
    clock_.spend(1000);
  }

 private:
  FakeClock& clock_;
  Diary& diary_;
};

TEST(Timing, ACallThatWarmsABurstUpFindsNothingOfItsSample) {
  FakeClock clock({.noise = 0.01}, 1);
  Diary diary;
  Noted baseline(clock, diary);
  Random random(1);
  const SetRanges sets{{0, 1}, {4, 3}, {8, 1}};  // set 6 warms up
  (void)time_against(std::nullopt, {baseline, clock}, diary, rotation, sets,
                     {.budget_s = 1, .max_rounds = 1, .warm = true, .shortly = true}, random);
  const auto first = std::find(diary.entries.begin(), diary.entries.end(), "make 4");
  ASSERT_GE(diary.entries.end() - first, 5);
  EXPECT_EQ(*(first - 1), "prepare 6");
  EXPECT_EQ(std::vector(first, first + 5),
            (std::vector<std::string>{"make 4", "call 6", "hand over 4", "call 4", "inspect 4"}));
}

TEST(Timing, StaysWithinItsBudgetAndSaysWhatItLeftOut) {
  FakeClock clock({.noise = 0.01}, 1);
  FakeRunner contestant(clock, 200'000);
  FakeRunner baseline(clock, 250'000);
  Random random(1);
  const Times times = time_against(&contestant, baseline, clock, rotation, {.budget_s = 6}, random);
  EXPECT_LE(clock.now_s(), 7);
  EXPECT_GE(times.mode(TimingMode::cold_burst).rounds(), min_rounds);
  EXPECT_EQ(times.mode(TimingMode::warm_sustained).rounds(), 0);
  EXPECT_NE(times.mode(TimingMode::warm_sustained).not_measured.find("time budget"), std::string::npos);
}

TEST(Timing, AMachineFarTooSlowStillGivesOneRound) {
  const Outcome outcome = judge({.noise = 0.01}, 3e6, 4e6, TimingMode::cold_burst, 3, {.budget_s = 1});
  EXPECT_EQ(outcome.times.mode(TimingMode::cold_burst).rounds(), 1);
  EXPECT_EQ(outcome.comparison, Comparison::too_noisy);
}

// One round is one chance of a machine that stood still.
TEST(Timing, OneFarTooSlowIsGivenASecondRoundAndIsSlower) {
  const Outcome outcome = judge({.noise = 0.01}, 4e7, 4e6, TimingMode::cold_burst, 3, {.budget_s = 1});
  EXPECT_EQ(outcome.times.mode(TimingMode::cold_burst).rounds(), 2);
  EXPECT_EQ(outcome.comparison, Comparison::slower);
}

TEST(Timing, NoSecondRoundIsWaitedForOnAMachineThatGrewBusy) {
  constexpr int quiet_samples = 7;  // two calls of each, and a round
  const auto later = [samples = 0]() mutable { return std::optional(++samples > quiet_samples ? 0.5 : 0); };
  const Outcome outcome =
      judge({.noise = 0.01, .waited_share = later}, 4e7, 4e6, TimingMode::cold_burst, 3, {.budget_s = 1});
  EXPECT_EQ(outcome.times.mode(TimingMode::cold_burst).rounds(), 1);
  EXPECT_EQ(outcome.comparison, Comparison::too_noisy);
}

TEST(Timing, TheBaselineAloneIsTimedAgainstItself) {
  FakeClock clock({.noise = 0.01}, 1);
  FakeRunner baseline(clock, 1000);
  Random random(1);
  const Times times = time_against(nullptr, baseline, clock, rotation, {.budget_s = 1}, random);
  const ModeTimes& mode = times.mode(TimingMode::cold_burst);
  EXPECT_GE(mode.rounds(), min_rounds);
  EXPECT_TRUE(mode.contestant_us.empty());
  EXPECT_EQ(mode.self_ratios().size(), mode.baseline_us.size());
}

TEST(Timing, BothOfTheBaselinesSamplesEnterASpeedup) {
  ModeTimes mode;
  mode.baseline_us = {1, 9};
  mode.baseline_again_us = {4, 1};
  mode.contestant_us = {2, 3};
  EXPECT_EQ(mode.speedups(), (std::vector<double>{1, 1}));
  EXPECT_EQ(mode.self_ratios(), (std::vector<double>{0.25, 9}));
}

TEST(Timing, ShortCallsAreBatchedIntoWholeTurns) {
  const Outcome outcome = judge({.noise = 0.01}, 5, 10, TimingMode::cold_burst, 3, {.budget_s = 1});
  EXPECT_EQ(outcome.times.mode(TimingMode::cold_burst).calls_per_sample, 24U);  // 100 us / 5 us, whole turns of 8
}

}  // namespace
}  // namespace thresher::arena
