#include "arena/ledger/ledger.hpp"
#include "arena/ledger/merge.hpp"
#include "arena/report/machines.hpp"
#include "arena/report/run_json.hpp"
#include "arena/report/standings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "arena/text_file.hpp"
#include "arena/tournament.hpp"
#include "cli/cli.hpp"
#include "cli/options.hpp"
#include "core/printable.hpp"

namespace thresher::cli {
namespace {

struct LedgerArguments {
  std::string ledger = arena::default_ledger().string();
  std::optional<std::int64_t> run;
  std::string json;
  std::vector<std::string> from;
  bool is_partial = false;
};

void list(const LedgerArguments& arguments) {
  const arena::Ledger ledger(arguments.ledger, arena::Ledger::Access::read);
  const std::vector<arena::RunRecord> runs = ledger.runs();
  fmt::print("{:>5}  {:20}  {:10}  {:16}  {:6}  {}\n", "run", "started", "state", "sources", "device", "suites");
  for (const arena::RunRecord& run : runs) {
    const std::string part = arena::part_text(run);
    fmt::print("{:>5}  {:20}  {:10}  {:16}  {:6}  {}{}\n", run.id, run.started,
               run.ended.empty() ? "unfinished" : "finished", run.context.source_hash, run.device,
               printable(fmt::format("{}", fmt::join(run.suites, ", "))), part.empty() ? "" : " (" + part + ")");
  }
}

void predictions(const LedgerArguments& arguments) {
  const arena::Ledger ledger(arguments.ledger, arena::Ledger::Access::read);
  std::vector<arena::RunRecord> runs;
  for (const arena::RunRecord& run : arguments.run ? ledger.runs() : arena::without_merged_shards(ledger.runs())) {
    if (!arguments.run || run.id == *arguments.run) {
      runs.push_back(ledger.load(run.id));
    }
  }
  const arena::PredictionQuality quality = arena::prediction_quality(runs);
  if (quality.times.empty()) {
    fmt::print(
        "no prediction has been measured yet: a tournament on a GPU of the planner's table predicts its times\n");
    return;
  }
  fmt::print("{:>5}  {:>12}  {:>12}  {:>7}  {:6}  {}\n", "run", "predicted us", "measured us", "error", "",
             "contestant");
  for (const arena::PredictedTime& time : quality.times) {
    fmt::print("{:>5}  {:>12.1f}  {:>12.1f}  {:>+5.0f} %  {:6}  {} on {}\n", time.run, time.predicted_us,
               time.measured_us, 100 * time.error(), time.is_unseen ? "unseen" : "", printable(time.contestant),
               printable(time.problem));
  }
  fmt::print("\n{}", arena::prediction_quality_text(quality));
}

void verify(const LedgerArguments& arguments, Context& context) {
  const arena::Ledger ledger(arguments.ledger, arena::Ledger::Access::read);
  const arena::Verification found = ledger.verify();
  for (const std::string& fault : found.faults) {
    fmt::print("{}\n", printable(fault));
  }
  if (found.faults.empty()) {
    fmt::print("{} links, all as they were written; head {}\n", found.links, found.head);
  } else {
    context.exit_status = gate_failed;
  }
}

std::int64_t wanted_run(const LedgerArguments& arguments, const arena::Ledger& ledger) {
  const auto runs = ledger.runs();
  return arguments.run ? *arguments.run : runs.empty() ? 0 : runs.back().id;
}

void show(const LedgerArguments& arguments) {
  const arena::Ledger ledger(arguments.ledger, arena::Ledger::Access::read);
  const arena::RunRecord run = ledger.load(wanted_run(arguments, ledger));
  const std::string part = arena::part_text(run);
  fmt::print("run {}{}, started {}, {}, seed {}, sources {}, device {}\n\n{}", run.id, part.empty() ? "" : ", " + part,
             run.started, run.ended.empty() ? "unfinished" : "ended " + run.ended, run.seed, run.context.source_hash,
             run.device, arena::standings(run));
  for (const arena::Entry& entry : run.entries) {
    const std::string where = arena::place_text(run, entry);
    fmt::print("\n{} on {}{}\n", printable(entry.contestant), printable(entry.suite),
               where.empty() ? "" : " (" + where + ")");
    for (const arena::GateResult& gate : entry.gates) {
      fmt::print("  {:10} {:10}  {}\n", arena::name(gate.kind), arena::name(gate.outcome), printable(gate.sentence));
    }
  }
}

/// Writes one run, or a list of all.
void write_json(const LedgerArguments& arguments) {
  if (!arguments.json.empty()) {
    refuse_overwriting("--json", arguments.json, arguments.ledger);
  }
  const arena::Ledger ledger(arguments.ledger, arena::Ledger::Access::read);
  std::string text;
  if (arguments.run) {
    text = arena::to_json(ledger.load(*arguments.run), 1);
  } else {
    for (const arena::RunRecord& run : ledger.runs()) {
      text += text.empty() ? "[" : ",\n";
      text += arena::to_json(ledger.load(run.id), 1);
    }
    text += text.empty() ? "[]" : "]";
  }
  if (arguments.json.empty()) {
    fmt::print("{}\n", text);
  } else {
    arena::write_text(arguments.json, text + "\n", "the JSON file");
  }
}

void merge(const LedgerArguments& arguments) {
  const arena::Merged merged = arena::merge_shards(arguments.ledger, arguments.from, arguments.is_partial);
  if (!merged.is_new) {
    fmt::print("run {} of ledger {} holds these shards already: nothing was written\n", merged.run.id,
               printable(arguments.ledger));
    return;
  }
  const std::size_t entries = merged.run.entries.size();
  fmt::print("run {} of ledger {}: {} contestant{}, {}\n{}", merged.run.id, printable(arguments.ledger), entries,
             entries == 1 ? "" : "s", arena::part_text(merged.run), arena::machines_text(merged.run));
}

}  // namespace

void add_ledger(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<LedgerArguments>();
  CLI::App* command = app.add_subcommand("ledger", "Look at what has been measured");
  command->require_subcommand(1);
  const auto add = [&](const char* name, const char* help, void (*body)(const LedgerArguments&)) {
    CLI::App* sub = command->add_subcommand(name, help);
    sub->add_option("--ledger", arguments->ledger, "The ledger's file")->capture_default_str();
    sub->callback([arguments, body] { body(*arguments); });
    return sub;
  };
  add("list", "All runs", list);
  add("show", "The standings and gates of one run", show)
      ->add_option("RUN", arguments->run, "Its number; the last if not given");
  add("predictions", "What was predicted beside what was measured, and how wrong it was", predictions)
      ->add_option("RUN", arguments->run, "One run; all of them if not given");
  CLI::App* verifying = command->add_subcommand("verify", "Whether anything was changed after it was written");
  verifying->add_option("--ledger", arguments->ledger, "The ledger's file")->capture_default_str();
  verifying->callback([arguments, &context] { verify(*arguments, context); });
  CLI::App* merging = add("merge", "Make one tournament of its shards", merge);
  merging->add_option("FROM", arguments->from, "The shards' ledgers")->required();
  merging->add_flag("--partial", arguments->is_partial, "Also where shards are missing");
  CLI::App* exporting = add("export", "Everything as JSON", write_json);
  exporting->add_option("RUN", arguments->run, "One run; all of them if not given");
  exporting->add_option("--json", arguments->json, "File to write; standard output if not given");
}

}  // namespace thresher::cli
