#pragma once
/// Enumerations as options take them.
#include <array>
#include <map>
#include <string>

#include "thresher/dual_gemm.hpp"

namespace thresher::cli {

/// For CLI::CheckedTransformer.
template <class Enum, std::size_t count>
std::map<std::string, Enum> by_name(const std::array<Enum, count>& values) {
  std::map<std::string, Enum> map;
  for (const Enum value : values) {
    map.emplace(name(value), value);
  }
  return map;
}

}  // namespace thresher::cli
