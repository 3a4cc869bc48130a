#pragma once
/// What is wrong with a command line, in words: the parser's own sentences say little.
#include <span>
#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace thresher::cli {

/// Options of numbers, also of subcommands, take decimal numbers alone, that float32 holds: the parser would read
/// 18446744073709551616 and -1 as 2^64 - 1. No option but --prefix takes an empty text.
void take_numbers_alone(CLI::App& app);

/// Throws Error(invalid_argument) that names the subcommands there are, where one is missing or the word in its place
/// is none. `words` are those behind `path`, the names that lead to `app`.
void check_subcommands(const CLI::App& app, std::span<const char* const> words, const std::string& path = "");

/// The command that was chosen, as it is typed: "thresher run gemm".
[[nodiscard]] std::string command_of(const CLI::App& app);

/// What the parser found in the command line of `app`.
[[nodiscard]] std::string in_words(const CLI::ParseError& error, const CLI::App& app);

}  // namespace thresher::cli
