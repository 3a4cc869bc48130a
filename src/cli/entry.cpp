#include "cli/entry.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <new>
#include <span>
#include <sstream>
#include <string>
#include <system_error>

#include "cli/cli.hpp"
#include "cli/planner_commands.hpp"
#include "cli/wording.hpp"
#include "core/printable.hpp"
#include "core/remark.hpp"
#include "thresher/error.hpp"
#include "thresher/version.hpp"

namespace thresher::cli {
namespace {

constexpr const char* please_report = ": this is a defect in Thresher, please report it with the command and its input";

int status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::out_of_memory:
    case ErrorCode::device:
    case ErrorCode::internal: return failure;
    case ErrorCode::invalid_argument:
    case ErrorCode::unsupported:
    case ErrorCode::io:
    case ErrorCode::compile: break;
  }
  return bad_input;
}

/// Joins all lines into one, except a compiler's message.
std::string told(const Error& error) {
  return error.code() == ErrorCode::compile ? printable_lines(error.what()) : printable(error.what());
}

void complain(const std::string& sentence) { print_note(stderr, "thresher: " + sentence + "\n"); }

/// Runs the command. Its output counts only when it is written: a full disk must not look like success, nor like a
/// defect.
template <class Command>
void print_all_of(const Command& command) {
  try {
    command();
    errno = 0;
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      throw std::system_error(errno == 0 ? EIO : errno, std::generic_category());
    }
  } catch (const std::system_error& error) {
    if (std::ferror(stdout) == 0) {
      throw;
    }
    throw Error(ErrorCode::io, fmt::format("standard output cannot be written: {}", error.code().message()));
  }
}

}  // namespace

int report_failure(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    complain(told(error) + (error.code() == ErrorCode::internal ? please_report : ""));
    return status_of(error.code());
  } catch (const std::bad_alloc&) {
    complain("out of memory: use a smaller problem or free some memory");
  } catch (const std::exception& error) {
    complain(fmt::format("unexpected failure: {}{}", printable_lines(error.what()), please_report));
  }
  return failure;
}

int run(int argc, const char* const* argv) {
  CLI::App app{"Fused GPU kernels for transformer inference, and the arena that proves them."};
  app.name("thresher");
  app.set_version_flag("--version", std::string(version()));
  app.require_subcommand(1);

  Context context;
  add_plan(app, context);
  add_predict(app, context);
  add_judge(app, context);
  add_profile(app, context);
  add_calibrate(app, context);
  add_audit(app, context);
  add_doctor(app, context);
  add_tournament(app, context);
  add_compile_confined(app, context);
  add_serve_calls(app, context);
  add_kernel_arguments(app, context);
  add_ledger(app, context);
  add_report(app, context);
  add_warm(app, context);
  add_run(app, context);
  add_quantize(app, context);
  add_pack(app, context);
  add_emulate(app, context);
  take_numbers_alone(app);

  // A file that may not grow makes the write fail with an error; the signal would end the process silently.
  signal(SIGXFSZ, SIG_IGN);
  try {
    const std::span words(argv, static_cast<std::size_t>(argc));
    check_subcommands(app, words.subspan(std::min<std::size_t>(words.size(), 1)));
    print_all_of([&] {
      try {
        app.parse(argc, argv);
      } catch (const CLI::Success& asked) {  // --help, --version
        std::ostringstream text;
        app.exit(asked, text, text);
        fmt::print("{}", printable_lines(text.str()));  // defaults contain paths from the environment
      }
    });
  } catch (const CLI::ParseError& error) {
    complain(fmt::format("{} (see {} --help)", printable(in_words(error, app)), command_of(app)));
    return bad_input;
  } catch (...) {
    return report_failure(std::current_exception());
  }
  return context.exit_status;
}

}  // namespace thresher::cli
