#pragma once
/// The subcommands that ask the planner, the panel and the audit; see cli.hpp.
#include "cli/cli.hpp"

namespace thresher::cli {

void add_audit(CLI::App& app, Context& context);
void add_judge(CLI::App& app, Context& context);
void add_plan(CLI::App& app, Context& context);

}  // namespace thresher::cli
