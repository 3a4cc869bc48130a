#include "arena/user_kernels/compile/include_lines.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace thresher::arena::user_kernels {
namespace {

/// Translation phase 2: joins lines before anything is read.
std::string joined(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\\' && at + 1 < text.size()) {
      std::size_t end = at + 1;  // g++ and NVRTC skip blanks behind the backslash
      while (end < text.size() && (text[end] == ' ' || text[end] == '\t' || text[end] == '\r')) {
        ++end;
      }
      if (end < text.size() && text[end] == '\n') {
        at = end;
        continue;
      }
    }
    out += text[at];
  }
  return out;
}

/// Replaces comments by blanks. Comment signs in a string are no comments.
std::string without_comments(std::string_view text) {
  std::string out;
  std::size_t at = 0;
  const auto copy_until = [&](std::size_t end) {
    out += text.substr(at, end - at);
    at = std::min(end, text.size());
  };
  while (at < text.size()) {
    const std::string_view rest = text.substr(at);
    if (rest.starts_with("/*")) {
      const std::size_t end = rest.find("*/", 2);
      out += ' ';
      at = end == std::string_view::npos ? text.size() : at + end + 2;
    } else if (rest.starts_with("//")) {
      at += std::min(rest.find('\n'), rest.size());
    } else if (rest.starts_with("R\"")) {
      const std::size_t open = std::min(rest.find('('), rest.size());
      const std::string close = ")" + std::string(rest.substr(2, open - std::min<std::size_t>(open, 2))) + "\"";
      const std::size_t end = rest.find(close, open);
      out += "\"\"";
      at = end == std::string_view::npos ? text.size() : at + end + close.size();
    } else if (rest.front() == '"' ||
               (rest.front() == '\'' && (out.empty() || std::isalnum(static_cast<unsigned char>(out.back())) == 0))) {
      std::size_t end = 1;
      while (end < rest.size() && rest[end] != rest.front() && rest[end] != '\n') {
        end += rest[end] == '\\' ? 2 : 1;
      }
      copy_until(at + std::min(end + 1, rest.size()));
    } else {
      copy_until(at + 1);
    }
  }
  return out;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\f\v";
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  return text.substr(0, text.find_last_not_of(blanks) + 1);
}

}  // namespace

std::vector<std::string> include_lines(std::string_view text) {
  constexpr std::array<std::string_view, 4> kin{"include_next", "include", "import", "embed"};
  const std::string plain = without_comments(joined(text));
  std::vector<std::string> found;
  for (std::string_view rest = plain; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = trimmed(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (!line.starts_with('#') && !line.starts_with("%:")) {
      continue;
    }
    line = trimmed(line.substr(line.starts_with('#') ? 1 : 2));
    const auto word = std::find_if(kin.begin(), kin.end(), [&](std::string_view w) { return line.starts_with(w); });
    if (word != kin.end()) {
      found.emplace_back(trimmed(line.substr(word->size())));
    }
  }
  return found;
}

}  // namespace thresher::arena::user_kernels
