#include "arena/report/report.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "arena/ledger/ledger.hpp"
#include "cli/cli.hpp"
#include "cli/options.hpp"
#include "core/printable.hpp"

namespace thresher::cli {
namespace {

struct ReportArguments {
  std::string ledger = arena::default_ledger().string();
  std::optional<std::int64_t> run;
  std::string folder = "report";
  std::vector<std::string> profiles;
};

void report(const ReportArguments& arguments) {
  refuse_overwriting_in(arguments.folder, arguments.ledger);
  for (const std::string& profile : arguments.profiles) {
    refuse_overwriting_in(arguments.folder, profile);
  }
  arena::check_report_files(arguments.folder);
  const arena::Ledger ledger(arguments.ledger, arena::Ledger::Access::read);
  const auto runs = ledger.runs();
  const arena::RunRecord run = ledger.load(arguments.run ? *arguments.run : runs.empty() ? 0 : runs.back().id);
  std::vector<std::string> profiles;
  for (const std::string& file : arguments.profiles) {
    profiles.push_back(arena::read_profile(file));
  }
  arena::prepare_report_folder(arguments.folder);
  fmt::print("report: {}\n", printable(arena::write_report(run, arguments.folder, profiles).string()));
}

}  // namespace

void add_report(CLI::App& app, Context&) {
  auto arguments = std::make_shared<ReportArguments>();
  CLI::App* command = app.add_subcommand("report", "Write the report of a run in the ledger");
  command->add_option("RUN", arguments->run, "Its number; the last if not given");
  command->add_option("--report", arguments->folder, "Folder for report.html and report.json")->capture_default_str();
  command->add_option("--profile", arguments->profiles, "Files that `thresher profile --json` wrote, to be shown too");
  command->add_option("--ledger", arguments->ledger, "The ledger's file")->capture_default_str();
  command->callback([arguments] { report(*arguments); });
}

}  // namespace thresher::cli
