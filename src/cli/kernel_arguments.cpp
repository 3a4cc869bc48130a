// `thresher kernel-arguments`: what user kernels are given, for each operation.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "arena/pitches/argument_text.hpp"
#include "cli/cli.hpp"

namespace thresher::cli {

void add_kernel_arguments(CLI::App& app, Context&) {
  CLI::App* command = app.add_subcommand("kernel-arguments", "Prints what a kernel of your own is given, by operation");
  const auto prints_header = std::make_shared<bool>(false);
  command->add_flag("--header", *prints_header, "prints thresher/own_calls.h, the structures of C");
  command->callback([prints_header] {
    using namespace arena::user_kernels;
    fmt::print("{}", *prints_header ? calls_header() : arguments_page());
  });
}

}  // namespace thresher::cli
