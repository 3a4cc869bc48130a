#include "thresher/knobs.hpp"

#include <fmt/format.h>

#include "thresher/error.hpp"

namespace thresher {

Knobs Knobs::parse(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  Knobs knobs;
  while (true) {
    const std::size_t start = text.find_first_not_of(blanks);
    if (start == std::string_view::npos) {
      return knobs;
    }
    text.remove_prefix(start);
    const std::string_view word = text.substr(0, text.find_first_of(blanks));
    text.remove_prefix(word.size());
    const std::size_t equals = word.find('=');
    const std::string name(word.substr(0, equals));
    const std::string value(equals == std::string_view::npos ? "true" : word.substr(equals + 1));
    if (name.empty() || value.empty()) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("'{}' is no knob: write name=value, or a name alone for name=true", word));
    }
    if (!knobs.values_.emplace(name, value).second) {
      throw Error(ErrorCode::invalid_argument, fmt::format("the knob {} is given twice", name));
    }
  }
}

std::string Knobs::text() const {
  std::string text;
  for (const auto& [name, value] : values_) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  }
  return text;
}

const std::string* Knobs::find(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : &found->second;
}

}  // namespace thresher
