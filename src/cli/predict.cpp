// `thresher predict`: predicts times on a card that is not here, and scores the predictions against a run there.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "arena/predictions/predicted.hpp"
#include "arena/suites/suite.hpp"
#include "arena/text_file.hpp"
#include "cli/options.hpp"
#include "cli/planner_commands.hpp"
#include "core/input_file.hpp"
#include "thresher/error.hpp"

namespace thresher::cli {
namespace {

struct PredictArguments {
  std::string device = "B200";
  std::string published;  ///< empty: built in
  std::vector<std::string> pitches;
  std::string output;
  std::string against;  ///< an earlier prediction
  std::string measured;
};

std::string read(const std::string& path) {
  const InputFile file = read_input_file(path);
  if (!file.bytes) {
    throw Error(ErrorCode::invalid_argument, fmt::format("predict: {}: {}", path, file.obstacle));
  }
  return *file.bytes;
}

void predict_card(const PredictArguments& arguments) {
  if (!arguments.published.empty()) {
    refuse_overwriting("--output", arguments.output, arguments.published);
  }
  for (const std::string& path : arguments.pitches) {
    refuse_overwriting("--output", arguments.output, path);
  }
  std::vector<arena::Pitch> pitches;
  for (const std::string& path : arguments.pitches) {
    pitches.push_back(arena::load_pitch(path));
  }
  const arena::Published published =
      arguments.published.empty() ? arena::built_in_published() : arena::load_published(arguments.published);
  std::vector<arena::Problem> lists = arena::load_suite("grouped_origin").problems;
  lists.erase(lists.begin() + static_cast<std::ptrdiff_t>(std::min(lists.size(), published.grouped.size())),
              lists.end());
  const std::string text = arena::predict_card(device_spec(arguments.device), published, pitches, lists);
  if (arguments.output.empty()) {
    fmt::print("{}", text);
  } else {
    arena::write_text(arguments.output, text, "the file of predictions");
  }
}

}  // namespace

void add_predict(CLI::App& app, Context&) {
  const auto arguments = std::make_shared<PredictArguments>();
  CLI::App* command = app.add_subcommand(
      "predict", "Predicts a card's times as intervals, to be kept; or scores them against a run there");
  std::vector<CLI::Option*> of_predicting{
      command->add_option("pitch", arguments->pitches, "Pitch files: the origin's, and those of contestants there"),
      add_device_table(*command, arguments->device, "The card, of those without a measurement")->capture_default_str(),
      command->add_option(
          "--published", arguments->published,
          "What others published of it; if not given what is built in, measurements/published_b200.toml"),
      command->add_option("--output", arguments->output, "File to write; standard output if not given")};
  CLI::Option* const against = command->add_option("--against", arguments->against, "Predictions to be scored");
  CLI::Option* const measured = command->add_option("--measured", arguments->measured,
                                                    "The run to score them by, as `thresher ledger export` writes it");
  against->needs(measured);
  measured->needs(against);
  for (CLI::Option* option : of_predicting) {
    against->excludes(option);
  }
  command->callback([arguments] {
    if (arguments->against.empty()) {
      predict_card(*arguments);
    } else {
      const std::string predicted = read(arguments->against);
      fmt::print("{}", arena::text(arena::score(predicted, read(arguments->measured))));
    }
  });
}

}  // namespace thresher::cli
