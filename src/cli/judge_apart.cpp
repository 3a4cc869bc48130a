// `thresher judge-apart`: the process in which a tournament lets a kernel from outside run.
#include <CLI/CLI.hpp>

#include "arena/own/work_apart.hpp"
#include "cli/cli.hpp"

namespace thresher::cli {

void add_judge_apart(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("judge-apart", "Started by tournaments, for kernels from outside");
  command->group("");  // in no list
  command->callback([&context] { context.exit_status = arena::own::work_apart(); });
}

}  // namespace thresher::cli
