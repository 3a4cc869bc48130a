#pragma once
/// The command `thresher` as a function, so that a test can link it.
#include <exception>

namespace thresher::cli {

/// Parses the arguments, does what they ask for and returns the exit status (cli.hpp). Throws nothing.
[[nodiscard]] int run(int argc, const char* const* argv);

/// Says on standard error what went wrong, in one sentence, and returns the exit status that it stands for.
[[nodiscard]] int report_failure(const std::exception_ptr& failure);

}  // namespace thresher::cli
