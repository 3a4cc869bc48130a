#pragma once
/// Knobs as attention's tables still read them.
#include <charconv>
#include <map>
#include <string>

#include "thresher/error.hpp"
#include "thresher/knobs.hpp"

namespace thresher::ops {

/// Every value as a whole number; true is 1, false is 0. Throws Error(invalid_argument) for another value.
inline std::map<std::string, int> whole_numbers(const Knobs& knobs) {
  std::map<std::string, int> numbers;
  for (const auto& [name, value] : knobs) {
    int number = value == "true" ? 1 : 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    const bool is_number = error == std::errc{} && end == value.data() + value.size();
    if (!is_number && value != "true" && value != "false") {
      throw Error(ErrorCode::invalid_argument,
                  "the attention knob " + name + " is '" + value + "', expected a whole number, true or false");
    }
    numbers.emplace(name, number);
  }
  return numbers;
}

}  // namespace thresher::ops
