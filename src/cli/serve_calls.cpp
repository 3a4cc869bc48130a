// `thresher serve-calls`: the process in which a tournament runs a user kernel.
#include <CLI/CLI.hpp>

#include "arena/user_kernels/served/call_server.hpp"
#include "cli/cli.hpp"

namespace thresher::cli {

void add_serve_calls(CLI::App& app, Context&) {
  CLI::App* command = app.add_subcommand("serve-calls", "Started by tournaments, for user kernels");
  command->group("");  // hidden from help
  command->callback([] { arena::user_kernels::serve_calls(); });
}

}  // namespace thresher::cli
