#include "arena/pitches/pitch.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "arena/expect_error.hpp"

namespace thresher::arena {
namespace {

const std::string good = R"(title = "Split K"
[contestant]
operation = "dual_gemm"
strategy = "interleaved"
knobs = { stages = 4, cluster = "2x1" }
[baseline]
strategy = "two_pass"
[claim]
speedup = [1.5, 1.8]
confidence = 0.9
reason = "everybody says so"
[accept]
geomean_speedup = 1.4
gates = ["correct", "timed"]
shared_memory_bytes_below = 204800
occupancy_not_worse = true
fall_back_below = 1.3
[abort]
share_of_time_below = 0.03
)";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

std::string error_in(const std::string& from, const std::string& to) {
  return error_of([&] { (void)parse_pitch(replaced(good, from, to), "p.toml"); });
}

TEST(Pitch, HoldsTheOriginsTerms) {
  const Pitch pitch = parse_pitch(good, "p.toml");
  EXPECT_EQ(label(pitch.contestant), "dual_gemm/interleaved[cluster=2x1,stages=4]");
  EXPECT_EQ(label(pitch.baseline), "dual_gemm/two_pass");
  EXPECT_EQ(pitch.claim.speedup_low, 1.5);
  EXPECT_EQ(pitch.claim.speedup_high, 1.8);
  EXPECT_EQ(pitch.accept.geomean_speedup, 1.4);
  EXPECT_EQ(pitch.accept.shared_memory_bytes_below, 204800);
  EXPECT_TRUE(pitch.accept.occupancy_not_worse);
  EXPECT_EQ(pitch.accept.fall_back_below, 1.3);
  EXPECT_EQ(pitch.accept.gates, (std::vector{GateKind::correct, GateKind::timed}));
  EXPECT_EQ(pitch.abort_below_share, 0.03);
}

TEST(Pitch, OneNumberIsAClaimToo) {
  const Pitch pitch = parse_pitch(replaced(good, "[1.5, 1.8]", "42"), "p.toml");
  EXPECT_EQ(pitch.claim.speedup_low, 42);
  EXPECT_EQ(pitch.claim.speedup_high, 42);
}

TEST(Pitch, ClaimsThatAreNotNumbersAreRefused) {
  EXPECT_EQ(error_in("[1.5, 1.8]", "\"much faster\""),
            "p.toml:9: `speedup` in [claim] must be a finite number or a list of them");
  EXPECT_EQ(error_in("[1.5, 1.8]", "nan"), "p.toml:9: `speedup` in [claim] must be a finite number or a list of them");
  EXPECT_EQ(error_in("[1.5, 1.8]", "-2"), "p.toml:9: `speedup` in [claim] is -2, but must be greater than 0");
  EXPECT_EQ(error_in("[1.5, 1.8]", "[1.8, 1.5]"),
            "p.toml:9: `speedup` in [claim] must be one number, or two of which the first is not greater");
  EXPECT_EQ(error_in("confidence = 0.9", "confidence = 90"),
            "p.toml:10: `confidence` in [claim] is 90, but must lie between 0 and 1");
}

TEST(Pitch, UnknownKeysAndGatesAreRefused) {
  EXPECT_EQ(error_in("reason =", "raeson ="), "p.toml:8: `reason` in [claim] is missing");
  EXPECT_EQ(error_in("geomean_speedup", "geomaen_speedup"),
            "p.toml:13: unknown key `geomaen_speedup` in [accept]; known here: each_speedup, fall_back_below, gates, "
            "geomean_speedup, occupancy_not_worse, shared_memory_bytes_below");
  EXPECT_EQ(error_in("\"timed\"]", "\"timd\"]"),
            "p.toml:14: `gates` in [accept] names \"timd\", but there are only the gates feasible, compiles, audited, "
            "race-free, correct, honest, timed");
}

TEST(Pitch, AContestantMayNotChallengeItself) {
  EXPECT_EQ(
      error_in("strategy = \"interleaved\"\nknobs = { stages = 4, cluster = \"2x1\" }", "strategy = \"two_pass\""),
      "p.toml:5: `baseline` is the contestant itself, dual_gemm/two_pass");
}

TEST(Pitch, ThePitchesThatComeWithThresherCanBeRead) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(THRESHER_SOURCE_DIR "/pitches")) {
    if (entry.path().extension() == ".toml") {
      EXPECT_FALSE(load_pitch(entry.path().string()).title.empty()) << entry.path();
    }
  }
  EXPECT_EQ(error_of([] { (void)load_pitch("no-such.toml"); }),
            "pitch no-such.toml: the file cannot be read: No such file or directory");
}

}  // namespace
}  // namespace thresher::arena
