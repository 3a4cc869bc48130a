#include "cli/wording.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include "thresher/error.hpp"

namespace thresher::cli {
namespace {

template <class Number>
std::string no_number(const std::string& text, std::string_view what) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc::result_out_of_range && stop == end) {
    return fmt::format("{} is not a {} from {} to {}", text, what, std::numeric_limits<Number>::lowest(),
                       std::numeric_limits<Number>::max());
  }
  return error == std::errc() && stop == end ? "" : fmt::format("{} is not a {}", text, what);
}

std::string no_unsigned(const std::string& text) {
  if (text.starts_with('-') && no_number<std::int64_t>(text, "").empty()) {
    return fmt::format("{} is not a whole number from 0 to {}", text, std::numeric_limits<std::uint64_t>::max());
  }
  return no_number<std::uint64_t>(text, "whole number");
}

std::string no_signed(const std::string& text) { return no_number<std::int64_t>(text, "whole number"); }

/// Options are held in float32 or more: a number that becomes 0 or Inf there would be another number.
std::string no_real(const std::string& text) {
  if (const std::string problem = no_number<double>(text, "number"); !problem.empty()) {
    return problem;
  }
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  const auto held = static_cast<float>(value);
  if ((held == 0.0F) == (value == 0.0) && std::isinf(held) == std::isinf(value)) {
    return "";
  }
  return fmt::format("{} becomes {} in float32, expected a number that it holds", text, held == 0.0F ? "0" : "Inf");
}

/// An empty text would look like an option that was left out.
CLI::Validator not_empty(const std::string& option) {
  return {[option](const std::string& text) -> std::string {
            if (text.empty()) {
              throw Error(ErrorCode::invalid_argument, fmt::format("{} is empty, expected a value", option));
            }
            return "";
          },
          ""};
}

/// The pieces of a text between `marks`. The marks stand in it in order, the first at its beginning, the last at its
/// end. Empty when they do not.
std::vector<std::string> between(std::string_view text, std::initializer_list<std::string_view> marks) {
  std::vector<std::string> pieces;
  if (!text.starts_with(*marks.begin())) {
    return pieces;
  }
  text.remove_prefix(marks.begin()->size());
  for (const std::string_view mark : std::span(marks).subspan(1)) {
    const std::size_t end = mark.empty() ? text.size() : text.find(mark);
    if (end == std::string_view::npos) {
      return {};
    }
    pieces.emplace_back(text.substr(0, end));
    text.remove_prefix(end + mark.size());
  }
  return pieces;
}

std::vector<std::string> names_of_subcommands(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* const subcommand : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!subcommand->get_group().empty()) {
      names.push_back(subcommand->get_name());
    }
  }
  return names;
}

/// The edit distance: the number of letters to add, remove or change.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

/// The command that the words chose, the innermost one.
const CLI::App& chosen(const CLI::App& app) {
  const std::vector<CLI::App*> subcommands = app.get_subcommands();
  return subcommands.empty() ? app : chosen(*subcommands.front());
}

/// The option of that command nearest to `word`, with an edit distance of at most two; or nothing.
std::string nearest_option(const CLI::App& command, std::string_view word) {
  word = word.substr(0, word.find('='));
  std::string nearest;
  std::size_t least = std::min<std::size_t>(3, word.size() / 2);
  for (const CLI::Option* const option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      if (const std::size_t letters = distance(word, "--" + name); letters < least) {
        least = letters;
        nearest = "--" + name;
      }
    }
  }
  return nearest;
}

std::string not_known(const CLI::App& app, const std::vector<std::string>& words) {
  const auto option =
      std::find_if(words.begin(), words.end(), [](const std::string& word) { return word.starts_with("--"); });
  const std::string nearest = option == words.end() ? "" : nearest_option(chosen(app), *option);
  return fmt::format("not known here: {}{}", fmt::join(words, " "),
                     nearest.empty() ? "" : "; the nearest option is " + nearest);
}

}  // namespace

std::string command_of(const CLI::App& app) {
  std::string path = app.get_name();
  for (const CLI::App* at = &app; !at->get_subcommands().empty();) {
    at = at->get_subcommands().front();
    path += " " + at->get_name();
  }
  return path;
}

void take_numbers_alone(CLI::App& app) {
  for (CLI::Option* const option : app.get_options()) {
    const std::string type = option->get_type_name();
    if (!option->get_positional() && option->get_name() != "--prefix") {  // a --prefix may be empty
      option->check(not_empty(option->get_name()));
    }
    if (type.starts_with("UINT")) {
      option->check(CLI::Validator(no_unsigned, "", "whole number"));
    } else if (type.starts_with("INT")) {
      option->check(CLI::Validator(no_signed, "", "whole number"));
    } else if (type.starts_with("FLOAT")) {
      option->check(CLI::Validator(no_real, "", "number"));
    }
  }
  for (CLI::App* const subcommand : app.get_subcommands([](CLI::App*) { return true; })) {
    take_numbers_alone(*subcommand);
  }
}

void check_subcommands(const CLI::App& app, std::span<const char* const> words, const std::string& path) {
  if (app.get_require_subcommand_min() == 0) {
    return;
  }
  const auto use_one_of = fmt::format("use one of {}", fmt::join(names_of_subcommands(app), ", "));
  if (words.empty()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} needs to be told what to do: {}", path.empty() ? "thresher" : path, use_one_of));
  }
  const std::string word = words.front();
  if (word.starts_with('-')) {
    if (app.get_option_no_throw(word) == nullptr) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("there is no option {} before a subcommand: {}", word, use_one_of));
    }
    return;
  }
  for (const CLI::App* const subcommand : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (subcommand->get_name() == word) {
      check_subcommands(*subcommand, words.subspan(1), path.empty() ? word : path + " " + word);
      return;
    }
  }
  throw Error(ErrorCode::invalid_argument,
              fmt::format("there is no subcommand {}{}: {}", path.empty() ? "" : path + " ", word, use_one_of));
}

std::string in_words(const CLI::ParseError& error, const CLI::App& app) {
  const std::string said = error.what();
  // A missing word may be there misspelt, so unknown words come first.
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr ||
      (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && !app.remaining(true).empty())) {
    return not_known(app, app.remaining(true));
  }
  if (const auto parts = between(said, {"Could not convert: ", " = ", ""}); parts.size() == 2) {
    return fmt::format("{}: {} is nothing that it takes", parts[0], parts[1]);
  }
  for (const auto& [mark, bound] :
       {std::pair{": At least ", "at least"}, {": At Most ", "at most"}, {": At most ", "at most"}}) {
    if (const auto parts = between(said, {"", mark, " required but received ", ""}); parts.size() == 3) {
      return fmt::format("{} takes {} {}, and {} came", parts[0], bound, parts[1], parts[2]);
    }
  }
  return said;
}

}  // namespace thresher::cli
