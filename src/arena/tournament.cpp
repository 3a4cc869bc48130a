#include "arena/tournament.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <span>

#include "arena/contestants/toolchain.hpp"
#include "arena/operation/operation.hpp"
#include "arena/random.hpp"
#include "arena/results/record_json.hpp"
#include "arena/results/shard_json.hpp"
#include "arena/user_kernels/contestant.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

/// A contestant and its opponent.
struct Pairing {
  const Suite* suite;
  std::unique_ptr<Contestant> contestant;
  std::unique_ptr<Contestant> baseline;  ///< null when the contestant is the baseline
  const Pitch* pitch;
};

struct Field {
  std::vector<Pairing> pairings;
  std::vector<std::string> not_entered;  ///< a sentence for each strategy that does not support a suite's formats
};

/// Enters every strategy that supports the suite's formats.
void enter_all(const Suite& suite, const Registry& registry, Field& field) {
  const std::string operation(suite.problems.front().operation().name());
  const std::vector<std::string> strategies = registry.strategies(operation);
  if (strategies.empty()) {
    throw Error(ErrorCode::unsupported,
                fmt::format("suite {}: this device has no strategies for {}", suite.name, operation));
  }
  std::optional<std::string> baseline;
  std::string obstacle;
  for (const std::string& strategy : strategies) {
    std::unique_ptr<Contestant> contestant = registry.create({operation, strategy});
    if (obstacle = unsupported_reason(suite, *contestant); !obstacle.empty()) {
      field.not_entered.push_back(fmt::format("{} is not entered on {}: {}", contestant->name(), suite.name, obstacle));
      continue;
    }
    field.pairings.push_back(
        {&suite, std::move(contestant), baseline ? registry.create({operation, *baseline}) : nullptr, nullptr});
    baseline = baseline.value_or(strategy);
  }
  if (!baseline) {
    throw Error(ErrorCode::unsupported,
                fmt::format("suite {}: no strategy of this device is made for its formats: {}", suite.name, obstacle));
  }
}

/// Accepts or rejects the limit of a pitch, and never changes it.
user_kernels::Kernel limited(const Pitch& pitch, double call_seconds) {
  user_kernels::Kernel kernel = *pitch.kernel;
  if (kernel.time_limit_s.value_or(0) > call_seconds) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("the pitch {} asks for {:g} s for one call (time_limit_s), and here one may take {:g} s: ask "
                    "for less, or let it with --call-seconds",
                    pitch.file, *kernel.time_limit_s, call_seconds));
  }
  kernel.time_limit_s = kernel.time_limit_s.value_or(std::min(usual_call_s, call_seconds));
  return kernel;
}

Pairing meet_kernel(const Suite& suite, const Pitch& pitch, const TournamentOptions& options, const Device& device,
                    const Registry& registry) {
  const user_kernels::Kernel kernel = limited(pitch, options.call_seconds);
  return {&suite, user_kernels::bring(pitch.contestant, kernel, device, registry, options.server),
          user_kernels::baseline_of(kernel, pitch.baseline, device, registry, options.server), &pitch};
}

/// Enters every pitch on the suites of its operation, after their baselines.
void add_pitches(const Suite& suite, const TournamentOptions& options, const Device& device, const Registry& registry,
                 std::vector<Pairing>& pairings) {
  const std::vector<Pitch>& pitches = options.pitches;
  const std::string operation(suite.problems.front().operation().name());
  std::vector<ContestantSpec> baselines;
  for (const Pitch& pitch : pitches) {
    if (pitch.contestant.operation == operation &&
        std::find(baselines.begin(), baselines.end(), pitch.baseline) == baselines.end()) {
      baselines.push_back(pitch.baseline);
      pairings.push_back({&suite, registry.create(pitch.baseline), nullptr, nullptr});
    }
  }
  for (const Pitch& pitch : pitches) {
    if (pitch.contestant.operation == operation) {
      pairings.push_back(
          pitch.kernel ? meet_kernel(suite, pitch, options, device, registry)
                       : Pairing{&suite, registry.create(pitch.contestant), registry.create(pitch.baseline), &pitch});
    }
  }
  if (baselines.empty()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("suite {} is about {}, and no pitch is", suite.name, operation));
  }
}

Field make_field(const TournamentOptions& options, const Device& device, const Registry& registry) {
  Field field;
  for (const Suite& suite : options.suites) {
    if (options.pitches.empty()) {
      enter_all(suite, registry, field);
    } else {
      add_pitches(suite, options, device, registry, field.pairings);
    }
  }
  return field;
}

std::string arguments_json(const TournamentOptions& options) {
  nlohmann::json suites = nlohmann::json::array();
  for (const Suite& suite : options.suites) {
    suites.push_back({{"name", suite.name}, {"title", suite.title}, {"timed", suite.timed}, {"text", suite.text}});
  }
  nlohmann::json pitches = nlohmann::json::array();
  for (const Pitch& pitch : options.pitches) {
    pitches.push_back({{"file", pitch.file}, {"text", pitch.text}});
    if (pitch.kernel) {
      pitches.back()["kernel"] = pitch.kernel->text;
    }
  }
  nlohmann::json arguments{{"suites", suites}, {"pitches", pitches}, {"seconds", options.seconds}};
  if (options.match_seconds) {
    arguments["match_seconds"] = *options.match_seconds;
  }
  if (options.call_seconds != usual_call_s) {
    arguments["call_seconds"] = options.call_seconds;
  }
  return arguments.dump();
}

std::size_t trials(const Suite& suite) { return suite.problems.size() * suite.distributions.size(); }
std::size_t timings(const Suite& suite) { return suite.timed ? suite.problems.size() : 0; }

constexpr double seconds_per_trial = 1;

/// 0: no limit.
double match_limit_s(const TournamentOptions& options, const Pairing& pairing) {
  if (options.match_seconds) {
    return *options.match_seconds;
  }
  const bool is_foreign = pairing.pitch != nullptr && pairing.pitch->kernel;
  return is_foreign ? usual_match_s(options.seconds, timings(*pairing.suite), trials(*pairing.suite)) : 0;
}

/// The matches of the whole tournament, each with the shard that it is dealt to.
std::vector<MatchRecord> dealt_matches(const TournamentOptions& options, const std::vector<Pairing>& pairings) {
  std::vector<MatchRecord> matches;
  std::vector<double> costs;
  for (const Pairing& pairing : pairings) {
    const Contestant& baseline = pairing.baseline ? *pairing.baseline : *pairing.contestant;
    matches.push_back({pairing.suite->name, pairing.contestant->name(), baseline.name()});
    costs.push_back(static_cast<double>(trials(*pairing.suite)) * seconds_per_trial +
                    static_cast<double>(timings(*pairing.suite)) * options.seconds);
  }
  deal(matches, costs, options.shard->count);
  return matches;
}

RunRecord describe_run(const TournamentOptions& options, const std::vector<Pairing>& pairings, const Rig& rig) {
  RunRecord run;
  Machine machine = rig.machine();
  run.arguments = arguments_json(options);
  if (options.shard) {
    machine.name = host_name();
    run.shard = ShardRecord{*options.shard, dealt_matches(options, pairings)};
    run.arguments = add_shard(run.arguments, *run.shard);
  }
  run.context = {source_hash(), to_json(toolchain()), to_json(machine)};
  run.device = rig.name();
  run.suites = suites_from_json(run.arguments);
  run.key = run_key(run);
  run.started = utc_now();
  run.seed = options.seed ? *options.seed : std::random_device()();
  return run;
}

/// A shard's comparisons must come from one machine, which also timed the baselines' rows.
void check_same_machine(const RunRecord& unfinished, const RunRecord& here) {
  const std::string began = machine_from_json(unfinished.context.machine).name;
  const std::string now = machine_from_json(here.context.machine).name;
  if (began != now) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--resume: shard {} was begun on {}, and this is {}: go on there, or start it anew here "
                            "without --resume, since a shard is held on one machine",
                            label(here.shard->shard), began, now));
  }
}

RunRecord begin_or_resume(RunRecord run, const TournamentOptions& options, Ledger& ledger, Progress& progress) {
  if (!options.resume) {
    run.id = ledger.begin(run);
    progress.say(fmt::format("run {} of ledger {}, {}seed {}", run.id, ledger.path().string(),
                             run.shard ? fmt::format("shard {}, ", label(run.shard->shard)) : "", run.seed));
    return run;
  }
  std::optional<RunRecord> unfinished = ledger.resume(run.key);
  if (!unfinished) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--resume: ledger {} holds no unfinished tournament of these suites, pitches, device and "
                            "sources that is not still running: start it without --resume",
                            ledger.path().string()));
  }
  if (options.seed && *options.seed != unfinished->seed) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--resume: the unfinished run {} has seed {}, not {}: leave --seed out", unfinished->id,
                            unfinished->seed, *options.seed));
  }
  if (run.shard) {
    check_same_machine(*unfinished, run);
  }
  progress.say(fmt::format("going on with run {} of ledger {}, seed {}, after {} of its contestants", unfinished->id,
                           ledger.path().string(), unfinished->seed, unfinished->entries.size()));
  return std::move(*unfinished);
}

/// Places of the pairings that the run contains.
std::vector<std::size_t> places_held(const std::vector<Pairing>& pairings, const RunRecord& run) {
  if (run.shard) {
    return matches_held(run.shard->matches, run.shard->shard.number);
  }
  std::vector<std::size_t> all(pairings.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

bool is_done(const RunRecord& run, std::size_t ordinal) {
  return std::any_of(run.entries.begin(), run.entries.end(),
                     [&](const Entry& entry) { return entry.ordinal == static_cast<std::int64_t>(ordinal); });
}

/// Writes the predictions for every contestant that has not run yet into the ledger, before the contestant is timed. A
/// resumed tournament keeps its earlier predictions.
void freeze_predictions(const TournamentOptions& options, const std::vector<Pairing>& pairings,
                        std::span<const std::size_t> held, RunRecord& run, Ledger& ledger) {
  std::vector<PredictionRecord> frozen;
  for (const std::size_t ordinal : held) {
    const auto place = static_cast<std::int64_t>(ordinal);
    const auto is_about = [&](const PredictionRecord& record) { return record.ordinal == place; };
    if (is_done(run, ordinal) || std::any_of(run.predictions.begin(), run.predictions.end(), is_about)) {
      continue;
    }
    const Pairing& pairing = pairings[ordinal];
    const auto records =
        predict_times(options.forecaster, *pairing.suite, pairing.contestant->spec(), pairing.pitch, place);
    frozen.insert(frozen.end(), records.begin(), records.end());
  }
  ledger.freeze(run.id, frozen);
  run.predictions = ledger.load(run.id).predictions;
}

/// A baseline's row on a suite; null: none yet.
const Entry* row_of(const Contestant& baseline, const Suite& suite, const RunRecord& run) {
  const auto row = std::find_if(run.entries.begin(), run.entries.end(), [&](const Entry& entry) {
    return entry.is_baseline() && entry.suite == suite.name && entry.contestant == baseline.name();
  });
  return row == run.entries.end() ? nullptr : &*row;
}

}  // namespace

bool TournamentResult::any_gate_failed() const {
  return std::any_of(run.entries.begin(), run.entries.end(),
                     [](const Entry& entry) { return first_failure(entry.gates) != nullptr; });
}

void check_field(const TournamentOptions& options, const Device& device, const Registry& registry) {
  (void)make_field(options, device, registry);
  for (const Pitch& pitch : options.pitches) {
    if (pitch.kernel) {
      user_kernels::check_tools(*pitch.kernel, device, options.suites);
    }
  }
}

TournamentResult hold_tournament(const TournamentOptions& options, Rig& rig, const Registry& registry, Ledger& ledger,
                                 Progress& progress) {
  const Field field = make_field(options, rig.device(), registry);
  const std::vector<Pairing>& pairings = field.pairings;
  if (std::any_of(options.pitches.begin(), options.pitches.end(),
                  [](const Pitch& pitch) { return pitch.kernel.has_value(); })) {
    user_kernels::check_server(options.server);
  }
  TournamentResult result;
  result.run = begin_or_resume(describe_run(options, pairings, rig), options, ledger, progress);
  RunRecord& run = result.run;
  const std::vector<std::size_t> held = places_held(pairings, run);
  for (const std::string& sentence : field.not_entered) {
    progress.say(sentence);
  }
  freeze_predictions(options, pairings, held, run, ledger);
  for (const std::size_t ordinal : held) {
    if (!is_done(run, ordinal)) {
      progress.expect("correct", trials(*pairings[ordinal].suite), seconds_per_trial);
      progress.expect("timed", timings(*pairings[ordinal].suite), options.seconds);
    }
  }
  const auto gates = standard_gates();
  const auto time = std::make_shared<MatchTime>([&rig] { return rig.clock().now_s(); });
  for (const std::size_t ordinal : held) {
    if (is_done(run, ordinal)) {
      continue;
    }
    const Pairing& pairing = pairings[ordinal];
    const std::size_t trials_after = progress.left("correct") - trials(*pairing.suite);
    const std::size_t timings_after = progress.left("timed") - timings(*pairing.suite);
    Suite suite = *pairing.suite;
    std::string left_out = leave_out_other_formats(suite, *pairing.contestant);
    const Entry* const own_row = pairing.baseline ? row_of(*pairing.baseline, suite, run) : nullptr;
    TimingOptions timing = timing_options(*pairing.suite, options.seconds);
    timing.check_time = [time] { time->check(); };
    for (Contestant* const one : {pairing.contestant.get(), pairing.baseline.get()}) {
      if (one != nullptr) {
        one->keep_to(time);
      }
    }
    time->begin(match_limit_s(options, pairing));
    Match match{suite,
                *pairing.contestant,
                pairing.baseline ? *pairing.baseline : *pairing.contestant,
                pairing.pitch,
                rig,
                run.seed,
                std::move(timing),
                progress,
                std::move(left_out),
                own_row,
                time};
    Entry entry = hold_match(match, gates, run.context);
    entry.ordinal = static_cast<std::int64_t>(ordinal);
    progress.leave("correct", trials_after);
    progress.leave("timed", timings_after);
    progress.say(fmt::format("{} on {}: {}", entry.contestant, entry.suite, verdict_text(entry)));
    try {
      ledger.append(run.id, entry);
    } catch (const Error& error) {
      result.ledger_problem = error.what();
    }
    run.entries.push_back(std::move(entry));
  }
  if (result.ledger_problem.empty()) {
    ledger.finish(run.id);
    run.ended = utc_now();
  }
  std::sort(run.entries.begin(), run.entries.end(),
            [](const Entry& left, const Entry& right) { return left.ordinal < right.ordinal; });
  return result;
}

}  // namespace thresher::arena
