// Choosing among strategies of the test's own: what leads, competes, falls back and is there by name alone.
#include "planner/choose.hpp"

#include <gtest/gtest.h>

#include "thresher/error.hpp"

namespace thresher::planner {
namespace {

struct Work {
  std::int64_t bytes = 0;
};

/// Reads the problem's bytes `times` times, as its knob says or in each of its candidates.
class Reader final : public strategies::Strategy<Work> {
 public:
  Reader(std::string name, strategies::Role role, std::vector<int> times)
      : name_(std::move(name)), role_(role), times_(std::move(times)) {}

  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] std::string_view summary() const override { return "reads"; }
  [[nodiscard]] DeviceKind device_kind() const override { return DeviceKind::cuda; }
  [[nodiscard]] strategies::Role role(const Work&) const override { return role_; }
  [[nodiscard]] std::vector<strategies::KnobHelp> knobs() const override { return {}; }
  [[nodiscard]] std::optional<std::string> unsupported_reason(const Work&, const DeviceSpec&) const override {
    return {};
  }
  [[nodiscard]] std::vector<std::string> infeasible_reasons(const Work& problem, const Knobs&,
                                                            const DeviceSpec&) const override {
    return problem.bytes > 0 ? std::vector<std::string>{} : std::vector<std::string>{"there is nothing to read"};
  }
  [[nodiscard]] std::vector<Knobs> candidates(const Work& problem, const Knobs& knobs,
                                              const DeviceSpec&) const override {
    std::vector<Knobs> found;
    for (const int times : problem.bytes > 0 ? times_ : std::vector<int>{}) {
      found.push_back(knobs);
      if (knobs.find("times") == nullptr) {
        found.back().set("times", std::to_string(times));
      } else if (name_ == "knobless") {
        throw Error(ErrorCode::invalid_argument, "the strategy knobless has no knob times");
      }
    }
    return found;
  }
  [[nodiscard]] strategies::PlannedCall plan(const Work& problem, const Knobs& knobs,
                                             const DeviceSpec&) const override {
    strategies::PlannedCall call{.strategy = name_, .knobs = knobs};
    const std::string* const times = knobs.find("times");
    if (times == nullptr || *times != "0") {
      strategies::TiledKernel kernel{.blocks = 1, .steps = 1};
      kernel.step.matrix_operations = 1;
      kernel.dram_bytes = static_cast<double>(problem.bytes) * (times == nullptr ? 1 : std::stoi(*times));
      call.work.parts.emplace_back(kernel);
    }
    return call;
  }

 private:
  std::string name_;
  strategies::Role role_;
  std::vector<int> times_;
};

using strategies::Role;

const Reader leader("leader", Role::leads, {});
const Reader slow("slow", Role::competes, {9, 3, 5});
const Reader quick("quick", Role::competes, {4});
const Reader fallback("fallback", Role::fallback, {1});
const Reader hidden("hidden", Role::by_name, {1});
const Reader knobless("knobless", Role::competes, {2});
constexpr std::int64_t bytes = 1 << 30;

std::vector<std::string> order(const std::vector<const strategies::Strategy<Work>*>& all, const Request& request) {
  std::vector<std::string> names;
  for (const Choice& choice : choose<Work>(all, {bytes}, request, device_spec("H200")).ranked) {
    names.push_back(choice.strategy + " " + choice.knobs.text());
  }
  return names;
}

TEST(Choose, TheFastestPredictionComesFirstAndAFallbackBehindAllThatCompete) {
  EXPECT_EQ(
      order({&fallback, &slow, &hidden, &quick, &leader}, {}),
      (std::vector<std::string>{"slow times=3", "quick times=4", "slow times=5", "slow times=9", "fallback times=1"}));
}

TEST(Choose, WhatLeadsComesFirstWhateverIsPredicted) {
  const Reader measured("measured", Role::leads, {50});
  EXPECT_EQ(order({&slow, &measured}, {}).front(), "measured times=50");
}

TEST(Choose, AskedByNameAStrategyNeedsNoCandidates) {
  EXPECT_EQ(order({&slow, &hidden}, {.strategy = "hidden"}), std::vector<std::string>{"hidden times=1"});
  EXPECT_EQ(order({&slow, &leader}, {.strategy = "leader"}), std::vector<std::string>{"leader "});
  EXPECT_TRUE(order({&leader}, {}).empty());
}

TEST(Choose, KnobsAreKeptAndAStrategyWithoutThemIsRefusedWithTheReason) {
  const Request request{.knobs = {{"times", "7"}}};
  const std::vector<const strategies::Strategy<Work>*> all{&quick, &knobless};
  const Choices choices = choose<Work>(all, {bytes}, request, device_spec("H200"));
  ASSERT_EQ(choices.ranked.size(), 1U);
  EXPECT_EQ(choices.ranked[0].knobs, request.knobs);
  ASSERT_EQ(choices.refused.size(), 1U);
  EXPECT_EQ(choices.refused[0].infeasible_reasons, std::vector<std::string>{"the strategy knobless has no knob times"});
}

TEST(Choose, KnobsThatNobodyTakesAreBadInput) {
  try {
    (void)choose<Work>(std::vector<const strategies::Strategy<Work>*>{&knobless, &hidden}, {bytes},
                       {.knobs = {{"times", "7"}}}, device_spec("H200"));
    FAIL() << "knobs of no strategy were taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_STREQ(error.what(),
                 "no strategy takes the knobs \"times=7\": the strategy knobless has no knob times; name a strategy to "
                 "hear what it says");
  }
}

TEST(Choose, SaysWhatIsInTheWayAndWhichStrategiesThereAre) {
  const std::vector<const strategies::Strategy<Work>*> all{&quick};
  const Choices none = choose<Work>(all, {0}, {}, device_spec("H200"));
  EXPECT_TRUE(none.ranked.empty());
  ASSERT_EQ(none.refused.size(), 1U);
  EXPECT_EQ(none.refused[0].infeasible_reasons, std::vector<std::string>{"there is nothing to read"});
  EXPECT_THROW((void)choose<Work>(all, {bytes}, {.strategy = "warp"}, device_spec("H200")), Error);
}

TEST(Choose, ACallWithoutWordsForThePredictorComesLastOfItsRole) {
  const Reader silent("silent", Role::competes, {0});
  EXPECT_EQ(order({&silent, &quick}, {}), (std::vector<std::string>{"quick times=4", "silent times=0"}));
}

}  // namespace
}  // namespace thresher::planner
