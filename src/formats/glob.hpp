#pragma once
/// Patterns of names.
#include <cstddef>
#include <string_view>

namespace thresher::formats {

/// Whether `pattern` matches all of `name`. '*' stands for any characters, also dots and none; '?' stands for one byte.
[[nodiscard]] constexpr bool matches(std::string_view pattern, std::string_view name) noexcept {
  std::size_t p = 0;
  std::size_t n = 0;
  std::size_t star = std::string_view::npos;  // the last '*' seen, which takes more when the rest does not match
  std::size_t taken = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++taken;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

/// Whether it matches more than one name.
[[nodiscard]] constexpr bool has_wildcards(std::string_view pattern) noexcept {
  return pattern.find_first_of("*?") != std::string_view::npos;
}

}  // namespace thresher::formats
