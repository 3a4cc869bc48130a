#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <new>

#include "cli/cli.hpp"
#include "cli/planner_commands.hpp"
#include "thresher/error.hpp"
#include "thresher/version.hpp"

int main(int argc, char** argv) {
  using namespace thresher;
  CLI::App app{"Fused GPU kernels for transformer inference, and the arena that proves them."};
  app.name("thresher");
  app.set_version_flag("--version", std::string(version()));
  app.require_subcommand(1);

  cli::Context context;
  cli::add_plan(app, context);
  cli::add_judge(app, context);
  cli::add_profile(app, context);
  cli::add_calibrate(app, context);
  cli::add_audit(app, context);
  cli::add_doctor(app, context);
  cli::add_tournament(app, context);
  cli::add_judge_sandboxed(app, context);
  cli::add_ledger(app, context);
  cli::add_report(app, context);
  cli::add_warm(app, context);
  cli::add_run(app, context);
  cli::add_quantize(app, context);
  cli::add_pack(app, context);
  cli::add_emulate(app, context);

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "thresher: {} (see thresher --help)\n", error.what());
    return cli::bad_input;
  } catch (const Error& error) {
    fmt::print(stderr, "thresher: {}\n", error.what());
    return cli::bad_input;
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "thresher: out of memory: use a smaller problem or free some memory\n");
    return cli::bad_input;
  } catch (const std::exception& error) {
    fmt::print(stderr, "thresher: unexpected failure: {}\n", error.what());
    return cli::bad_input;
  }
  return context.exit_status;
}
