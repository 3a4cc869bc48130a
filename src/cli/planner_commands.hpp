#pragma once
/// The subcommands that ask the planner, the panel, the audit and the profile; see cli.hpp.
#include "cli/cli.hpp"

namespace thresher::cli {

void add_audit(CLI::App& app, Context& context);
void add_calibrate(CLI::App& app, Context& context);
void add_judge(CLI::App& app, Context& context);
void add_plan(CLI::App& app, Context& context);
void add_predict(CLI::App& app, Context& context);
void add_profile(CLI::App& app, Context& context);

}  // namespace thresher::cli
