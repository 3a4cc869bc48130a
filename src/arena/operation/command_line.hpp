#pragma once
/// Options of problems whose values are enumerations with names.
#include <array>
#include <string>
#include <vector>

#include "arena/operation/operation.hpp"

namespace thresher::arena {

template <class Enum, std::size_t count>
std::vector<std::string> names_of(const std::array<Enum, count>& values) {
  std::vector<std::string> names;
  for (const Enum value : values) {
    names.emplace_back(name(value));
  }
  return names;
}

/// The value with that name, which must exist.
template <class Enum, std::size_t count>
Enum value_of(const std::array<Enum, count>& values, const std::string& wanted) {
  for (const Enum value : values) {
    if (name(value) == wanted) {
      return value;
    }
  }
  return values.front();
}

}  // namespace thresher::arena
