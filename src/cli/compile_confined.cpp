// `thresher compile-confined`: the process in which NVRTC compiles a user kernel.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "arena/user_kernels/compile/cuda_build.hpp"
#include "cli/cli.hpp"

namespace thresher::cli {

void add_compile_confined(CLI::App& app, Context&) {
  const auto folder = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("compile-confined", "Started by tournaments, for user kernels");
  command->group("");  // hidden from help
  command->add_option("FOLDER", *folder)->required();
  command->callback([folder] { arena::user_kernels::compile_confined(*folder); });
}

}  // namespace thresher::cli
