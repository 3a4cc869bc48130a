#pragma once
/// The command `thresher` as a function, so that a test can link it.
#include <exception>

namespace thresher::cli {

/// Parses the arguments, runs the command and returns the exit status (cli.hpp). Throws nothing.
[[nodiscard]] int run(int argc, const char* const* argv);

/// Prints the failure on standard error, in one sentence, and returns its exit status.
[[nodiscard]] int report_failure(const std::exception_ptr& failure);

}  // namespace thresher::cli
