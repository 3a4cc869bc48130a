// `thresher judge`: the panel ranks pitches by evidence, before anything runs.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "arena/panel/panel.hpp"
#include "arena/predictions/calibration_file.hpp"
#include "arena/suites/suite.hpp"
#include "cli/options.hpp"
#include "cli/planner_commands.hpp"
#include "core/printable.hpp"

namespace thresher::cli {
namespace {

struct JudgeArguments {
  std::vector<std::string> pitches;
  std::string suite = "origin";
  std::string device = "H200";
  std::string calibration;
  bool json = false;
};

void print(const std::vector<arena::PitchScore>& opinions) {
  fmt::print("{:>5}  {:>12}  {:>9}  {}\n", "score", "claimed", "predicted", "pitch");
  for (const arena::PitchScore& opinion : opinions) {
    fmt::print("{:>5}  {:>12}  {:>9}  {}\n       {}\n",
               opinion.withdrawn ? "out" : fmt::format("{:.2f}", opinion.score),
               fmt::format("{:.3g}-{:.3g}x", opinion.claimed_low, opinion.claimed_high),
               opinion.predicted_speedup ? fmt::format("{:.3g}x", *opinion.predicted_speedup) : "-",
               printable(opinion.pitch), printable(opinion.reason));
  }
}

void judge(const JudgeArguments& arguments) {
  const DeviceSpec& device = device_spec(arguments.device);
  const arena::Suite suite = arena::load_suite(arguments.suite);
  const planner::Calibration calibration = arena::load_calibration(arguments.calibration, device.name).calibration;
  std::vector<arena::PitchScore> opinions;
  for (const std::string& path : arguments.pitches) {
    opinions.push_back(arena::consider(arena::load_pitch(path), suite.problems, device, calibration));
  }
  opinions = arena::rank_pitches(std::move(opinions));
  if (!arguments.json) {
    print(opinions);
    return;
  }
  nlohmann::json all = nlohmann::json::array();
  for (const arena::PitchScore& opinion : opinions) {
    all.push_back(nlohmann::json::parse(arena::score_json(opinion)));
  }
  fmt::print("{}\n", all.dump(1, ' ', true));
}

}  // namespace

void add_judge(CLI::App& app, Context&) {
  const auto arguments = std::make_shared<JudgeArguments>();
  CLI::App* command = app.add_subcommand("judge", "Ranks pitches by evidence, before anything is run");
  command->add_option("pitch", arguments->pitches, "Pitch files")->required();
  command->add_option("--suite", arguments->suite, "Suite whose problems are asked about")->capture_default_str();
  add_device_table(*command, arguments->device, "The card, which need not be here")->capture_default_str();
  command->add_option("--calibration", arguments->calibration,
                      "Parameters that `thresher calibrate` wrote; its own file if not given");
  command->add_flag("--json", arguments->json, "For machines");
  command->callback([arguments] { judge(*arguments); });
}

}  // namespace thresher::cli
