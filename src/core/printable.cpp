#include "core/printable.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace thresher {
namespace {

struct Range {
  std::uint32_t first;
  std::uint32_t last;
};

constexpr std::array<Range, 12> not_shown{{{0x00, 0x1F},          // C0
                                           {0x7F, 0x9F},          // DEL, C1
                                           {0xAD, 0xAD},          // soft hyphen
                                           {0x61C, 0x61C},        // Arabic letter mark
                                           {0x180E, 0x180E},      // Mongolian vowel separator
                                           {0x200B, 0x200F},      // no width, marks of direction
                                           {0x2028, 0x202E},      // separators of lines, direction
                                           {0x2060, 0x206F},      // no width, isolated direction
                                           {0xFEFF, 0xFEFF},      // byte order mark
                                           {0xFFF9, 0xFFFB},      // annotations
                                           {0x1BCA0, 0x1BCA3},    // controls of shorthand
                                           {0xE0000, 0xE0FFF}}};  // tags, more selectors

/// From here on a character may take two columns.
constexpr std::uint32_t first_wide = 0x1100;

bool is_shown(std::uint32_t code) noexcept {
  return std::none_of(not_shown.begin(), not_shown.end(),
                      [code](const Range& range) { return range.first <= code && code <= range.last; });
}

/// The bytes of the character that `text` begins with, 0 if they are not UTF-8.
std::size_t character_bytes(std::string_view text, std::uint32_t& code) noexcept {
  const auto first = static_cast<unsigned char>(text[0]);
  const std::size_t bytes = first < 0x80   ? 1
                            : first < 0xC2 ? 0
                            : first < 0xE0 ? 2
                            : first < 0xF0 ? 3
                            : first < 0xF5 ? 4
                                           : 0;
  if (bytes == 0 || bytes > text.size()) {
    return 0;
  }
  code = bytes == 1 ? first : first & (0xFFU >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xC0U) != 0x80) {
      return 0;
    }
    code = code << 6 | (next & 0x3FU);
  }
  const bool overlong = (bytes == 3 && code < 0x800) || (bytes == 4 && code < 0x10000);
  const bool no_character = (code >= 0xD800 && code < 0xE000) || code > 0x10FFFF;
  return overlong || no_character ? 0 : bytes;
}

/// At most `longest` characters of `text`; `whole` says whether that is all of it.
std::string shown(std::string_view text, std::size_t longest, bool& whole) {
  std::string out;
  for (std::size_t characters = 0; characters < longest && !text.empty(); ++characters) {
    std::uint32_t code = 0;
    const std::size_t bytes = character_bytes(text, code);
    out += bytes != 0 && is_shown(code) ? text.substr(0, bytes) : "?";
    text.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
  whole = text.empty();
  return out;
}

}  // namespace

std::string printable(std::string_view text) {
  bool whole = true;
  return shown(text, std::numeric_limits<std::size_t>::max(), whole);
}

std::string quoted_name(std::string_view name) {
  constexpr std::size_t longest = 120;
  bool whole = true;
  const std::string text = shown(name, longest, whole);
  return "'" + text + (whole ? "'" : "…'");
}

std::string printable_lines(std::string_view text) {
  std::string out;
  for (;;) {
    const std::size_t end = std::min(text.find_first_of("\n\t"), text.size());
    out += printable(text.substr(0, end));
    if (end == text.size()) {
      return out;
    }
    out += text[end];
    text.remove_prefix(end + 1);
  }
}

std::string_view first_columns(std::string_view text, std::size_t columns) noexcept {
  std::size_t end = 0;
  while (end < text.size()) {
    std::uint32_t code = 0;
    const std::size_t bytes = std::max<std::size_t>(character_bytes(text.substr(end), code), 1);
    const std::size_t width = code < first_wide ? 1 : 2;
    if (width > columns) {
      break;
    }
    columns -= width;
    end += bytes;
  }
  return text.substr(0, end);
}

bool is_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    std::uint32_t code = 0;
    const std::size_t bytes = character_bytes(text, code);
    if (bytes == 0) {
      return false;
    }
    text.remove_prefix(bytes);
  }
  return true;
}

}  // namespace thresher
