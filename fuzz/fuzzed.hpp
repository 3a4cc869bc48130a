#pragma once
/// Shared helpers of the targets. Bytes are either rejected with an error or parsed, and parsed values are checked.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <span>
#include <string>
#include <string_view>

#include "core/printable.hpp"
#include "thresher/error.hpp"

namespace thresher::fuzz {

/// Ends the target, which keeps the input.
inline void require(bool holds) {
  if (!holds) {
    std::abort();
  }
}

/// The error's sentence blames the input, and has a length that a terminal can show.
inline void require_sentence(const Error& error, ErrorCode code = ErrorCode::invalid_argument) {
  constexpr std::size_t longest = 2000;
  const std::string_view sentence = error.what();
  require(error.code() == code && !sentence.empty() && sentence.size() <= longest);
}

/// Whether `read` parsed the input; false when it rejected it.
template <class Read>
bool understood(Read&& read, ErrorCode code = ErrorCode::invalid_argument) {
  try {
    read();
    return true;
  } catch (const Error& error) {
    require_sentence(error, code);
    return false;
  }
}

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Takes a text up to the next NUL off the front.
inline std::string_view take_text(std::string_view& rest) {
  const std::size_t end = rest.find('\0');
  const std::string_view text = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return text;
}

/// Takes a byte off the front, 0 where there is none.
inline std::uint8_t take_byte(std::string_view& rest) {
  if (rest.empty()) {
    return 0;
  }
  const auto byte = static_cast<std::uint8_t>(rest.front());
  rest.remove_prefix(1);
  return byte;
}

}  // namespace thresher::fuzz
