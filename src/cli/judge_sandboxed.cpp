// `thresher judge-sandboxed`: the process in which a tournament lets a kernel from outside run.
#include <CLI/CLI.hpp>

#include "arena/user_kernels/sandbox_worker.hpp"
#include "cli/cli.hpp"

namespace thresher::cli {

void add_judge_sandboxed(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("judge-sandboxed", "Started by tournaments, for kernels from outside");
  command->group("");  // in no list
  command->callback([&context] { context.exit_status = arena::user_kernels::work_in_sandbox(); });
}

}  // namespace thresher::cli
