#include "arena/tournament.hpp"
#include "arena/report/run_json.hpp"
#include "arena/report/standings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "arena/predictions/tuning_winners.hpp"
#include "arena/report/report.hpp"
#include "arena/rig/card_rig.hpp"
#include "arena/text_file.hpp"
#include "cli/cli.hpp"
#include "cli/interruption.hpp"
#include "cli/options.hpp"
#include "core/printable.hpp"
#include "runtime/process.hpp"
#include "thresher/error.hpp"

namespace thresher::cli {
namespace {

struct TournamentArguments {
  std::vector<std::string> suites;
  std::vector<std::string> pitches;
  std::string device = "best";
  std::string card;  ///< of the table, instead of a device; empty: a device
  std::string report;
  std::string json;
  std::string ledger = arena::default_ledger().string();
  std::optional<std::uint64_t> seed;
  double seconds = 6;
  std::optional<double> match_seconds;
  std::optional<double> call_seconds;
  std::optional<arena::Shard> shard;
  bool resume = false;
  bool tune = false;
};

/// Every file that the tournament reads or appends to.
std::vector<std::string> inputs_of(const TournamentArguments& arguments, const arena::TournamentOptions& options) {
  std::vector<std::string> inputs = arguments.suites;
  inputs.insert(inputs.end(), arguments.pitches.begin(), arguments.pitches.end());
  for (const arena::Pitch& pitch : options.pitches) {
    if (pitch.kernel) {
      inputs.push_back(pitch.kernel->source);
    }
  }
  inputs.push_back(arguments.ledger);
  return inputs;
}

/// Finds unwritable outputs before hours of work, not after.
void check_outputs(const TournamentArguments& arguments, const arena::TournamentOptions& options) {
  for (const std::string& input : inputs_of(arguments, options)) {
    if (!arguments.report.empty()) {
      refuse_overwriting_in(arguments.report, input);
    }
    if (!arguments.json.empty()) {
      refuse_overwriting("--json", arguments.json, input);
    }
  }
  if (!arguments.report.empty() && !arguments.json.empty()) {
    refuse_output_in(arguments.report, "--json", arguments.json);
  }
  if (!arguments.report.empty()) {
    arena::prepare_report_folder(arguments.report);
  }
  if (!arguments.json.empty()) {
    arena::check_writable(arguments.json, "the JSON file");
  }
}

/// Shards with different seeds do not form one tournament.
void check_seed(const TournamentArguments& arguments) {
  if (arguments.shard && !arguments.seed && !arguments.resume) {
    throw Error(ErrorCode::invalid_argument,
                "--shard needs --seed: the shards of a tournament have one seed, so give the same to all of them");
  }
}

arena::TournamentOptions read_options(const TournamentArguments& arguments) {
  check_seed(arguments);
  arena::TournamentOptions options;
  for (const std::string& named : arguments.suites) {
    arena::Suite suite = arena::load_suite(named);
    if (std::any_of(options.suites.begin(), options.suites.end(),
                    [&](const auto& o) { return o.name == suite.name; })) {
      throw Error(ErrorCode::invalid_argument, fmt::format("suite {} is named twice: name it once", suite.name));
    }
    options.suites.push_back(std::move(suite));
  }
  for (const std::string& pitch : arguments.pitches) {
    if (std::count_if(arguments.pitches.begin(), arguments.pitches.end(),
                      [&](const std::string& other) { return same_file(other, pitch); }) > 1) {
      throw Error(ErrorCode::invalid_argument, fmt::format("pitch {} is named twice: name it once", pitch));
    }
    options.pitches.push_back(arena::load_pitch(pitch));
  }
  options.seed = arguments.seed;
  options.seconds = arguments.seconds;
  options.match_seconds = arguments.match_seconds;
  options.call_seconds = arguments.call_seconds.value_or(arena::usual_call_s);
  options.shard = arguments.shard;
  options.resume = arguments.resume;
  return options;
}

/// A user kernel is built and run in a folder of its own; without one it would fail without its fault.
void check_temporary_folder(const arena::TournamentOptions& options) {
  if (std::any_of(options.pitches.begin(), options.pitches.end(), [](const auto& pitch) { return pitch.kernel; })) {
    const runtime::TemporaryFolder can_be_made;
  }
}

/// The machine or card of the tournament.
struct Place {
  std::unique_ptr<arena::Rig> rig;
  std::unique_ptr<arena::Registry> registry;
  arena::Forecaster forecaster;
};

Place place_of(const TournamentArguments& arguments) {
  if (!arguments.card.empty()) {
    const DeviceSpec& card = device_spec(arguments.card);
    return {arena::card_rig(card), arena::card_registry(card), arena::forecaster_for(&card)};
  }
  Place place{arena::make_rig(arguments.device), nullptr, {}};
  place.registry = arena::library_registry(place.rig->device());
  place.forecaster = arena::forecaster_for(place.rig->machine());
  return place;
}

/// On a card that is not here a user kernel would be judged as one of this CPU.
void check_kernels(const TournamentArguments& arguments, const arena::TournamentOptions& options) {
  for (const arena::Pitch& pitch : options.pitches) {
    if (!arguments.card.empty() && pitch.kernel) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("--device-table {}: the pitch {} brings a kernel of its own, which is judged where it "
                              "runs: name a --device",
                              arguments.card, pitch.file));
    }
  }
}

/// Tuning needs a device table: this fails before hours of work, not after.
void check_tuning(const TournamentArguments& arguments, const arena::TournamentOptions& options,
                  const arena::Rig& rig) {
  if (arguments.tune && options.forecaster.device == nullptr) {
    throw Error(ErrorCode::unsupported,
                fmt::format("--tune: there is nothing to choose from on {}: leave --tune out", rig.device().name()));
  }
  if (arguments.tune) {
    arena::check_tuned(options.suites);
  }
}

/// Prints the future choices of plan().
void tune(const arena::TournamentOptions& options, const arena::Rig& rig, const arena::RunRecord& run) {
  const std::filesystem::path path = ops::tuning_file();
  ops::Tuning tuning = ops::read_tuning(path);
  const auto winners =
      arena::enter_winners(run, options.suites, rig.device().name(), *options.forecaster.device, tuning);
  if (path.has_parent_path()) {
    std::filesystem::create_directories(path.parent_path());
  }
  arena::write_text(path, tuning.text(), "the tuning cache");
  fmt::print("\ntuning: {} problem{} where another choice than the default is faster, in {}\n", winners.size(),
             winners.size() == 1 ? "" : "s", printable(path.string()));
  for (const std::string& winner : winners) {
    fmt::print("  {}\n", winner);
  }
}

void tournament(const TournamentArguments& arguments, Context& context) {
  arena::TournamentOptions options = read_options(arguments);
  check_temporary_folder(options);
  check_kernels(arguments, options);
  const Place place = place_of(arguments);
  arena::Rig& rig = *place.rig;
  options.forecaster = place.forecaster;
  check_tuning(arguments, options, rig);
  arena::check_field(options, rig.device(), *place.registry);
  check_outputs(arguments, options);
  if (arguments.resume) {
    (void)arena::Ledger(arguments.ledger, arena::Ledger::Access::read);  // must exist: this creates none
  }
  arena::Ledger ledger(arguments.ledger, arena::Ledger::Access::write);
  arena::Progress progress = arena::Progress::on_standard_error();
  const arena::TournamentResult result = [&] {
    const SaidWhenInterrupted how_to_go_on(
        fmt::format("thresher: interrupted: every contestant that is through is in ledger {}; the same command with "
                    "--resume goes on",
                    arguments.ledger));
    return arena::hold_tournament(options, rig, *place.registry, ledger, progress);
  }();
  fmt::print("{}", arena::standings(result.run));
  if (!arguments.json.empty()) {
    arena::write_text(arguments.json, arena::to_json(result.run, 1) + "\n", "the JSON file");
  }
  if (!arguments.report.empty()) {
    fmt::print("\nreport: {}\n", printable(arena::write_report(result.run, arguments.report).string()));
  }
  if (arguments.tune) {
    tune(options, rig, result.run);
  }
  if (!result.ledger_problem.empty()) {
    throw Error(ErrorCode::io, result.ledger_problem);
  }
  context.exit_status = result.any_gate_failed() ? gate_failed : 0;
}

}  // namespace

void add_tournament(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<TournamentArguments>();
  CLI::App* command = app.add_subcommand("tournament", "Let contestants compete on suites of problems");
  command
      ->add_option("SUITE", arguments->suites,
                   fmt::format("Built-in suites ({}) or TOML files", fmt::join(arena::built_in_suites(), ", ")))
      ->required();
  command->add_option("--pitch", arguments->pitches,
                      "TOML files with contestants, baselines and claims; only these compete");
  add_device(*command, arguments->device);
  CLI::Option* const card = command->add_option(
      "--device-table", arguments->card,
      "A card of the planner's table instead, which need not be here: what needs no run is judged, up to race-free");
  card->excludes("--device");
  command->add_option("--report", arguments->report, "Folder for report.html and report.json");
  command->add_option("--json", arguments->json, "File for everything that was found, as JSON");
  command->add_option("--ledger", arguments->ledger, "File that keeps every result")->capture_default_str();
  add_seed(*command, arguments->seed, "Seed of inputs and order; random if not given");
  add_seconds(*command, arguments->seconds, "Time for timing one contestant on one problem");
  add_limit(*command, "--match-seconds", arguments->match_seconds,
            "Time that a match may take in all; not given, one with a user kernel 10 minutes, one more for each "
            "trial and 20 times --seconds for each problem, others any");
  add_limit(
      *command, "--call-seconds", arguments->call_seconds,
      fmt::format("Time that a pitch may ask for one call of its kernel; {:g} if not given", arena::usual_call_s));
  CLI::Option* const shard =
      add_shard(*command, arguments->shard,
                "Hold part I of N, with --seed; `thresher ledger merge` makes one tournament of all parts");
  command->add_flag("--resume", arguments->resume, "Go on with the same tournament where it was interrupted");
  command
      ->add_flag("--tune", arguments->tune,
                 "Let plan() choose what was measured faster than its default here, by more than the noise")
      ->excludes(card)
      ->excludes(shard);
  command->callback([arguments, &context] { tournament(*arguments, context); });
}

}  // namespace thresher::cli
