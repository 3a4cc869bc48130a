#pragma once
/// Enumerations as options parse them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "thresher/dual_gemm.hpp"

namespace thresher::cli {

/// For an option's `transform`: accepts the names of `values`, and lists them in the error for any other word.
template <class Enum, std::size_t count>
CLI::Validator by_name(const std::array<Enum, count>& values) {
  std::map<std::string, std::string> numbers;  // the numbers from which the parser makes an enumerator
  std::vector<std::string> names;
  for (const Enum value : values) {
    names.emplace_back(name(value));
    numbers.emplace(names.back(), std::to_string(static_cast<int>(value)));
  }
  return {[numbers, names](std::string& word) {
            const auto found = numbers.find(word);
            if (found == numbers.end()) {
              return fmt::format("{} is none of {}", word, fmt::join(names, ", "));
            }
            word = found->second;
            return std::string();
          },
          fmt::format("{}", fmt::join(names, "|")), "by name"};
}

}  // namespace thresher::cli
