// Spellings that ledgers, suites, pitches and command lines hold. The suites of this repository use every key of every
// operation. The keys of pitches and of kernels in them are held by tests/arena/suites/pitch_test.cpp.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "arena/operation/operation.hpp"
#include "arena/pitches/pitch.hpp"
#include "arena/suites/suite.hpp"
#include "core/fingerprint.hpp"
#include "frozen_file.hpp"
#include "strategies/attention/registry.hpp"
#include "strategies/gemm/registry.hpp"

namespace thresher {
namespace {

using strategies::gemm::Product;
using test::FrozenLines;

/// Ranges have many values of one distance.
std::string values_text(const std::vector<std::string>& values) {
  constexpr std::size_t many = 12;
  return values.size() <= many
             ? fmt::format("{}", fmt::join(values, ", "))
             : fmt::format("{}, {}, … {}: {} values", values[0], values[1], values.back(), values.size());
}

template <class Strategies>
void add_strategies(FrozenLines& lines, const std::string& operation, const Strategies& all) {
  for (const auto* const strategy : all) {
    const char* const device = strategy->device_kind() == DeviceKind::cpu ? "CPU" : "GPU";
    auto& knobs = lines[fmt::format("{} on the {}: {}", operation, device, strategy->name())];
    for (const strategies::KnobHelp& knob : strategy->knobs()) {
      knobs.insert(fmt::format("{} = {}", knob.name, values_text(knob.allowed)));
    }
  }
}

TEST(FrozenSpellings, OfStrategiesAndKnobsAreAsTheyWere) {
  FrozenLines lines;
  for (const DeviceKind kind : {DeviceKind::cpu, DeviceKind::cuda}) {
    add_strategies(lines, "dual_gemm", strategies::gemm::strategies_of(Product::dual_gemm, kind));
    add_strategies(lines, "grouped_gemm", strategies::gemm::strategies_of(Product::grouped, kind));
    add_strategies(lines, "attention", strategies::attention::registry().of(kind));
  }
  test::expect_frozen("knobs.txt", "The strategies of each operation, and the knobs of each with their values.", lines);
}

/// All labels of a suite as one hash, and a few of them to look at.
TEST(FrozenSpellings, OfProblemsAreAsTheyWere) {
  constexpr std::size_t most_shown = 12;
  FrozenLines lines;
  for (const std::string& name : arena::built_in_suites()) {
    const arena::Suite suite = arena::load_suite(name);
    Fingerprint all;
    std::set<std::string> shown;
    const std::size_t step = (suite.problems.size() + most_shown - 1) / most_shown;
    for (std::size_t i = 0; i < suite.problems.size(); ++i) {
      const std::string label = arena::label(suite.problems[i]);
      all.add(label);
      if (i % step == 0) {
        shown.insert(label);
      }
    }
    lines[fmt::format("{}: {} problems of {}", name, suite.problems.size(), suite.problems[0].operation().name())] =
        shown;
    lines["hash of all labels"].insert(fmt::format("{}: {}", name, all.hex()));
  }
  test::expect_frozen("labels.txt", "Problems of the suites as ledgers spell them: some, and a hash of all.", lines);
}

TEST(FrozenSpellings, OfContestantsInPitchesAreAsTheyWere) {
  namespace fs = std::filesystem;
  FrozenLines lines;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(THRESHER_SOURCE_DIR "/pitches")) {
    if (entry.path().extension() == ".toml") {
      const arena::Pitch pitch = arena::load_pitch(entry.path().string());
      lines[fs::relative(entry.path(), THRESHER_SOURCE_DIR).string()] = {"contestant " + label(pitch.contestant),
                                                                         "baseline " + label(pitch.baseline)};
    }
  }
  test::expect_frozen("contestants.txt", "The contestants of the pitches as ledgers spell them.", lines);
}

}  // namespace
}  // namespace thresher
