#pragma once
/// Explains errors in a command line, in more detail than the parser's own sentences.
#include <span>
#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace thresher::cli {

/// Number options, also of subcommands, accept only decimal numbers that float32 holds: the parser would read
/// 18446744073709551616 and -1 as 2^64 - 1. No option but --prefix accepts an empty text.
void take_numbers_alone(CLI::App& app);

/// Throws Error(invalid_argument) that lists the subcommands, where one is missing or unknown. `words` are those behind
/// `path`, the names that lead to `app`.
void check_subcommands(const CLI::App& app, std::span<const char* const> words, const std::string& path = "");

/// The chosen command as typed: "thresher run gemm".
[[nodiscard]] std::string command_of(const CLI::App& app);

/// The parser's error about the command line of `app`.
[[nodiscard]] std::string in_words(const CLI::ParseError& error, const CLI::App& app);

}  // namespace thresher::cli
