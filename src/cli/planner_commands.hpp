#pragma once
/// The subcommands that use the planner, the panel, the audit and the profile; see cli.hpp.
#include "cli/cli.hpp"

namespace thresher::cli {

void add_audit(CLI::App& app, Context& context);
void add_calibrate(CLI::App& app, Context& context);
void add_judge(CLI::App& app, Context& context);
void add_plan(CLI::App& app, Context& context);
/// Layers, as subcommands of `plan`.
void add_plan_layers(CLI::App& plan_command);
/// Throws Error for words before the name of a subcommand of `plan`: they belong to the dual GEMM, and would be ignored
/// silently.
void refuse_words_before(const CLI::App& command);
void add_predict(CLI::App& app, Context& context);
void add_profile(CLI::App& app, Context& context);

}  // namespace thresher::cli
