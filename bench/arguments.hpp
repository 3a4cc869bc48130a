#pragma once
/// The arguments of benches.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "thresher/error.hpp"
#include "thresher/tensor.hpp"

namespace thresher::bench {

/// The whole number, at least `least`, before the first comma of `text`. Throws Error(invalid_argument) for another.
inline std::int64_t whole_number(std::string_view text, std::int64_t least) {
  const std::string_view digits = text.substr(0, text.find(','));
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end != digits.data() + digits.size() || value < least) {
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is no whole number from {} on", digits, least));
  }
  return value;
}

/// The whole numbers of `text`, which commas separate. Throws as whole_number.
inline std::vector<std::int64_t> whole_numbers(std::string_view text, std::int64_t least) {
  std::vector<std::int64_t> found;
  for (std::size_t at = 0; at <= text.size(); at = std::min(text.find(',', at), text.size()) + 1) {
    found.push_back(whole_number(text.substr(at), least));
  }
  return found;
}

/// `see_case` sees each argument that is no option; `see_option` each option with its value, and says whether there is
/// such an option. Throws Error(invalid_argument) for one that there is not, or that has no value.
template <class SeeCase, class SeeOption>
void for_each_argument(std::span<char* const> arguments, const SeeCase& see_case, const SeeOption& see_option) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string word = arguments[i];
    if (!word.starts_with("--")) {
      see_case(word);
      continue;
    }
    if (++i == arguments.size()) {
      throw Error(ErrorCode::invalid_argument, fmt::format("{} wants a value", word));
    }
    if (!see_option(word, std::string(arguments[i]))) {
      throw Error(ErrorCode::invalid_argument, fmt::format("there is no {}", word));
    }
  }
}

/// The format of operands with this name. Throws Error(invalid_argument) where there is none.
inline Format format_named(std::string_view text) {
  const auto* const found =
      std::find_if(operand_formats.begin(), operand_formats.end(), [&](Format one) { return name(one) == text; });
  if (found == operand_formats.end()) {
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is not a format of operands", text));
  }
  return *found;
}

/// Prints the error in one line. Returns the status of a program that ends with it: 2 for arguments that it does not
/// take, else 1.
inline int end_with(const Error& error) {
  fmt::print(stderr, "{}\n", error.what());
  return error.code() == ErrorCode::invalid_argument ? 2 : 1;
}

}  // namespace thresher::bench
