#pragma once
/// Numbers and formats in the arguments of benches.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string_view>

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

/// The format of operands with this name. Throws Error(invalid_argument) where there is none.
inline Format format_named(std::string_view text) {
  const auto* const found =
      std::find_if(operand_formats.begin(), operand_formats.end(), [&](Format one) { return name(one) == text; });
  if (found == operand_formats.end()) {
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is not a format of operands", text));
  }
  return *found;
}

}  // namespace thresher::bench
