// A family whose members are misspelt, mistyped or not named does not compile, and the compiler says in a sentence what
// is wrong. What a strategy makes of a family's members.
#include "strategies/kernel_strategy.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "pipeline/refusals.hpp"
#include "strategies/families.hpp"
#include "thresher/error.hpp"

namespace thresher::strategies::test {
namespace {

constexpr const char* header = "strategies/families.hpp";
const std::array<pipeline::test::Refusal, 11> refusals{{
    {"overrides.device_kind is set if and only if there is a 'static constexpr DeviceKind device_kind'", 1},
    {"overrides.supersedes is set if and only if there is a 'static constexpr std::string_view supersedes'", 1},
    {"overrides.role is set if and only if there is a 'static Role role(", 3},
    {"overrides.own_choice is set if and only if there is a 'static Config own_choice(", 1},
    {"overrides.completed is set if and only if there is a 'static Config completed(", 1},
    {"overrides.candidates is set if and only if there is a 'static std::vector<Config> candidates(", 1},
    {"overrides.work is set if and only if there is a 'static WorkModel work(", 1},
    {"overrides.profiled is set if and only if there is a 'static std::optional<ProfiledCall> profiled(", 1},
    {"overrides.edges is set if and only if there is a 'static std::vector<Problem> edges(", 1},
    {"overrides.built_in is set if and only if there is a 'static std::vector<Sample<Problem>> built_in()'", 1},
    {"overrides.samples is set if and only if there is a 'static std::vector<Sample<Problem>> samples()'", 1},
}};

TEST(KernelFamilies, WrongMembersDoNotCompile) {
  const pipeline::test::Outcome outcome = pipeline::test::compile_for_host(header, "-DBAD_FAMILIES");
  EXPECT_FALSE(outcome.compiled);
  pipeline::test::expect_refusals(refusals, outcome.log);
  EXPECT_NE(outcome.log.find("WithoutPlan"), std::string::npos) << outcome.log;
}

const DeviceSpec& h200() { return device_spec("H200"); }

TEST(KernelStrategy, HasTheDefaultsOfWhatAFamilyLeavesOut) {
  const KernelStrategy<Plain> plain;
  EXPECT_EQ(plain.name(), "plain");
  EXPECT_EQ(plain.device_kind(), DeviceKind::cuda);
  EXPECT_EQ(plain.role({}), Role::competes);
  EXPECT_EQ(plain.supersedes(), "");
  EXPECT_EQ(plain.candidates({8}, {}, h200()), std::vector{Knobs::parse("rows=1")});
  EXPECT_TRUE(plain.work({8}, {}, h200()).parts.empty());
  EXPECT_FALSE(plain.profiled({8}, {}, h200(), {}));
  EXPECT_EQ(plain.edges({8}, {}, h200()).front().rows, 8);
  EXPECT_TRUE(plain.built_in().empty());
  EXPECT_TRUE(plain.samples().empty());
}

TEST(KernelStrategy, AsksAFamilyForWhatItHas) {
  const KernelStrategy<Own> own;
  EXPECT_EQ(own.device_kind(), DeviceKind::cpu);
  EXPECT_EQ(own.role({}), Role::by_name);
  EXPECT_EQ(own.supersedes(), "plain");
  EXPECT_EQ(own.work({8}, {}, h200()).parts.size(), 1U);
  EXPECT_EQ(own.edges({8}, Knobs::parse("rows=4"), h200()).front().rows, 5);
  EXPECT_EQ(own.profiled({8}, {}, h200(), {})->call.strategy, "own");
  EXPECT_EQ(own.built_in().size(), 1U);
  EXPECT_EQ(own.samples().size(), 2U);
}

TEST(KernelStrategy, KeepsEachFeasibleCandidateOnceWithTheKnobsAskedFor) {
  const KernelStrategy<Own> own;
  const std::vector<Knobs> all{Knobs::parse("rows=2"), Knobs::parse("rows=1"), Knobs::parse("rows=4")};
  EXPECT_EQ(own.candidates({8}, {}, h200()), all);
  EXPECT_EQ(own.candidates({2}, {}, h200()), std::vector({all[0], all[1]}));
  EXPECT_EQ(own.candidates({8}, Knobs::parse("rows=4"), h200()), std::vector{all[2]});
  EXPECT_THROW((void)own.candidates({8}, Knobs::parse("rows=3"), h200()), Error);
}

TEST(KernelStrategy, PlansWhatIsFeasible) {
  const KernelStrategy<Own> own;
  const PlannedCall call = own.plan({8}, Knobs::parse("rows=4"), h200());
  EXPECT_EQ(call.strategy, "own");
  EXPECT_EQ(call.knobs, Knobs::parse("rows=4"));
  EXPECT_EQ(call.work.parts.size(), 1U);
  EXPECT_EQ(call.why, "it is large");
  try {
    (void)own.plan({1}, {}, h200());
    ADD_FAILURE() << "it was planned";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_STREQ(error.what(), "strategy own cannot run: it has too few rows");
  }
}

}  // namespace
}  // namespace thresher::strategies::test
