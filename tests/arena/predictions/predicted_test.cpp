// What is predicted of cards that nobody here has run on, and how it is scored once somebody has.
#include "arena/predictions/predicted.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "arena/gemm/task.hpp"
#include "arena/suites/suite.hpp"
#include "core/input_file.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

using nlohmann::json;

const std::string root = THRESHER_SOURCE_DIR;

Published published() { return load_published(root + "/measurements/published_b200.toml"); }

/// In the order in which a shell names them.
std::vector<Pitch> pitches_in(const std::vector<std::string>& folders) {
  std::vector<Pitch> pitches;
  for (const std::string& folder : folders) {
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(root + "/pitches/" + folder)) {
      files.push_back(entry.path().string());
    }
    std::sort(files.begin(), files.end());
    std::transform(files.begin(), files.end(), std::back_inserter(pitches), load_pitch);
  }
  return pitches;
}

std::vector<Problem> lists() { return load_suite("grouped_origin").problems; }

std::string predicted_times(const DeviceSpec& device) {
  return predict_card(device, published(), pitches_in({"origin", "blackwell"}), lists());
}

/// What the command writes.
const std::string& predicted() {
  static const std::string text = predicted_times(device_spec("B200"));
  return text;
}
const json& predicted_json() {
  static const json all = json::parse(predicted());
  return all;
}

// A changed constant, model or candidate shows here: write the file anew on purpose, before anybody runs there, with
//   thresher predict --device-table b200 --output measurements/predictions_b200.json pitches/origin/*.toml
//   pitches/blackwell/*.toml
TEST(Predicted, TheCommittedFileIsWhatTheCommandWritesNow) {
  const InputFile committed = read_input_file(root + "/measurements/predictions_b200.json");
  ASSERT_TRUE(committed.bytes) << committed.obstacle;
  EXPECT_EQ(*committed.bytes, predicted());
}

TEST(Predicted, AChangedConstantChangesTheFile) {
  DeviceSpec other = device_spec("B200");
  other.tensor.card_bytes_per_us.value = 16.0e6;
  EXPECT_NE(predicted_times(other), predicted());
}

TEST(Predicted, EveryTimeOfTheKernelIsAnIntervalWithItsBound) {
  const json& all = predicted_json();
  EXPECT_EQ(all["device"], "B200");
  EXPECT_EQ(all["constants"].size(), tensor_unit_fields.size());
  ASSERT_EQ(all["dual_gemm"].size(), 4U);
  for (const json& problem : all["dual_gemm"]) {
    std::size_t intervals = 0;
    for (const json& contestant : problem["contestants"]) {
      EXPECT_FALSE(contestant["bound"].get<std::string>().empty());
      if (contestant.contains("low_us")) {
        ++intervals;
        EXPECT_LT(contestant["low_us"], contestant["predicted_us"]);
        EXPECT_LT(contestant["predicted_us"], contestant["high_us"]);
      }
    }
    EXPECT_EQ(intervals + 1, problem["contestants"].size());  // the library's time has none
    EXPECT_FALSE(problem["published"]["times"].empty());
  }
  ASSERT_EQ(all["grouped"].size(), 4U);
  for (const json& problem : all["grouped"]) {
    EXPECT_EQ(problem["contestants"][0]["contestant"], "grouped_dual_gemm/tcgen05");
    EXPECT_LT(problem["one_matrix"]["high_us"], problem["contestants"][0]["high_us"]);
    EXPECT_LT(problem["one_matrix"]["low_us"], problem["one_matrix"]["high_us"]);
  }
  for (const json& pitch : all["pitches"]) {
    EXPECT_LE(pitch["low"], pitch["speedup"]) << pitch["pitch"];
    EXPECT_LE(pitch["speedup"], pitch["high"]) << pitch["pitch"];
    EXPECT_FALSE(pitch["here"].get<std::string>().empty());
  }
}

TEST(Predicted, ThePublishedProblemsAreTheOrigins) {
  std::vector<std::string> predicted_labels;
  for (const json& problem : predicted_json()["dual_gemm"]) {
    predicted_labels.push_back(problem["problem"]);
  }
  std::vector<std::string> labels;
  for (const Problem& problem : load_suite("origin").problems) {
    labels.push_back(label(problem));
  }
  EXPECT_EQ(predicted_labels, labels);
  const Published given = published();
  const std::vector<Problem> all = lists();
  ASSERT_EQ(given.grouped.size(), 4U);
  for (std::size_t i = 0; i < given.grouped.size(); ++i) {
    const ProductTask& task = all[i].as<ProductTask>();
    EXPECT_EQ(given.grouped[i].counts, task.counts);
    EXPECT_EQ(given.grouped[i].n, task.problem.n);
    EXPECT_EQ(given.grouped[i].k, task.problem.k);
    EXPECT_EQ(task.problem.a, Format::nvfp4);
  }
}

// Whom the script on a card enters is whom times were predicted of.
TEST(Predicted, BothSidesOfEveryPitchOfTheCardArePredicted) {
  std::vector<std::string> contestants;
  for (const json& contestant : predicted_json()["dual_gemm"][0]["contestants"]) {
    contestants.push_back(contestant["contestant"]);
  }
  const std::vector<Pitch> pitches = pitches_in({"blackwell"});
  EXPECT_GE(pitches.size(), 6U);
  for (const Pitch& pitch : pitches) {
    for (const ContestantSpec* spec : {&pitch.contestant, &pitch.baseline}) {
      EXPECT_NE(std::find(contestants.begin(), contestants.end(), label(*spec)), contestants.end()) << label(*spec);
    }
  }
}

// What the panel of a pitch of ours claims was predicted.
TEST(Predicted, OurOwnClaimsHoldWhatIsPredicted) {
  for (const json& pitch : predicted_json()["pitches"]) {
    if (pitch["here"] == "as it stands") {
      EXPECT_LE(pitch["claimed"][0], pitch["speedup"]) << pitch["pitch"];
      EXPECT_GE(pitch["claimed"][1], pitch["speedup"]) << pitch["pitch"];
    }
  }
}

/// As docs/design/kernels/blackwell.md has it.
std::string row_of(const json& problem) {
  const auto interval = [&](const std::string& contestant) {
    const auto& all = problem["contestants"];
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const json& one) { return one["contestant"] == contestant; });
    return fmt::format("{:.1f} to {:.1f}", (*found)["low_us"].get<double>(), (*found)["high_us"].get<double>());
  };
  double best = 1e9;
  for (const json& time : problem["published"]["times"]) {
    best = std::min(best, time["us"].get<double>());
  }
  const std::string label = problem["problem"];
  return fmt::format("| {} | {} | {} | {} | {} |\n", label.substr(0, label.find(' ')), interval("dual_gemm/tcgen05"),
                     interval("dual_gemm/tcgen05[unsigned_scales=true]"),
                     problem["contestants"][0]["bound"].get<std::string>(), best);
}

TEST(Predicted, TheDocumentsTableIsTheFiles) {
  const std::string document = *read_input_file(root + "/docs/design/kernels/blackwell.md").bytes;
  for (const json& problem : predicted_json()["dual_gemm"]) {
    EXPECT_NE(document.find(row_of(problem)), std::string::npos) << row_of(problem);
  }
}

std::string refusal(const DeviceSpec& device, const std::vector<Pitch>& pitches) {
  try {
    (void)predict_card(device, published(), pitches, lists());
  } catch (const Error& error) {
    return error.what();
  }
  return "not refused";
}

TEST(Predicted, RefusesWhatItHasNoWordsFor) {
  EXPECT_EQ(refusal(device_spec("H200"), {}), "predict: the constants of H200 have no intervals: name B200 or GB300");
  Pitch unknown = pitches_in({"origin"}).front();
  unknown.file = "elsewhere/mine.toml";
  EXPECT_EQ(refusal(device_spec("B200"), {unknown}),
            "predict: what the pitch elsewhere/mine.toml is on such a card was not written down");
}

json run_of(const std::vector<std::pair<std::string, double>>& times, const std::string& problem) {
  json run{{"entries", json::array()}, {"context", {{"machine", {{"gpu", "NVIDIA B200"}}}}}};
  for (const auto& [contestant, us] : times) {
    json measurement{{"problem", problem}, {"mode", "cold burst"}, {"rounds", 5}, {"contestant_us", {{"value", us}}}};
    run["entries"].push_back({{"contestant", contestant}, {"measurements", json::array({measurement})}});
  }
  return run;
}

TEST(Predicted, AScoreCountsHitsAndOrders) {
  const json intervals{{"device", "B200"},
                       {"grouped", json::array()},
                       {"dual_gemm",
                        {{{"problem", "p"},
                          {"contestants",
                           {{{"contestant", "fast"}, {"low_us", 8.0}, {"high_us", 10.0}},
                            {{"contestant", "near"}, {"low_us", 9.5}, {"high_us", 12.0}},
                            {{"contestant", "slow"}, {"low_us", 15.0}, {"high_us", 20.0}},
                            {{"contestant", "unmeasured"}, {"low_us", 1.0}, {"high_us", 2.0}},
                            {{"contestant", "without"}, {"predicted_us", 60.0}}}}}}}};
  const json run = run_of({{"fast", 9}, {"near", 13}, {"slow", 12}, {"without", 60}}, "p");
  const IntervalScore found = score(intervals.dump(), run.dump());
  ASSERT_EQ(found.times.size(), 3U);
  EXPECT_EQ(found.hits(), 1U);
  EXPECT_EQ(found.ordered, 2U);      // fast and slow, near and slow
  EXPECT_EQ(found.right_order, 1U);  // near was slower
  EXPECT_NE(text(found).find("1 of 3 times lie in their intervals; 1 of 2 pairs"), std::string::npos) << text(found);
  EXPECT_EQ(text(score(intervals.dump(), run_of({}, "p").dump())), "nothing that was predicted has been measured\n");
  json with_a_gap = run;
  with_a_gap["entries"][0]["measurements"][0] = {
      {"problem", "p"}, {"mode", "cold burst"}, {"not_measured", "the time budget was spent"}};
  EXPECT_EQ(score(intervals.dump(), with_a_gap.dump()).times.size(), 2U);
  for (const json& elsewhere : {json{{"gpu", "NVIDIA H200"}}, json{{"device", "cpu"}}}) {
    json other = run;
    other["context"]["machine"] = elsewhere;
    EXPECT_THROW((void)score(intervals.dump(), other.dump()), Error) << elsewhere;
  }
  EXPECT_THROW((void)score("[]", run.dump()), Error);
  EXPECT_THROW((void)score(intervals.dump(), "{}"), Error);
}

TEST(Published, SaysWhatIsWrongWithAFile) {
  const std::string head = "title = \"t\"\ncaveat = \"c\"\nsources = [\"s\"]\n[[dual_gemm]]\nm = 1\nn = 1\n";
  const auto said = [&](const std::string& rest) {
    try {
      (void)parse_published(head + rest, "f");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  EXPECT_EQ(said("k = 16\nspeed_of_light_us = 1.0\nwho = [\"a\"]\nus = [1.0]\n"), "nothing");
  EXPECT_NE(said("k = 16\nspeed_of_light_us = 1.0\nwho = [\"a\"]\nus = [1.0, 2.0]\n").find("a time for each"),
            std::string::npos);
  EXPECT_NE(said("k = 17\nspeed_of_light_us = 1.0\nwho = [\"a\"]\nus = [1.0]\n").find("multiple of 16"),
            std::string::npos);
  EXPECT_NE(said("k = 16\nspeed_of_light_us = 1.0\nwho = [\"a\"]\nus = [1.0]\nspeed = 1\n").find("speed"),
            std::string::npos);
}

}  // namespace
}  // namespace thresher::arena
