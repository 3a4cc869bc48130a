#pragma once
/// Suites: TOML files of problems.
#include <string>
#include <string_view>
#include <vector>

#include "arena/data/distribution.hpp"
#include "arena/operation/problem.hpp"

namespace thresher::arena {

struct Suite {
  std::string name;                         ///< the file's name without ".toml"
  std::string title;                        ///< for people
  std::string text;                         ///< the file as read
  bool timed = true;                        ///< false: contestants are judged and not timed
  bool warm = false;                        ///< timed on one input set, as its peers are: no mode is cold
  std::vector<Distribution> distributions;  ///< not empty; timing uses the first
  std::vector<Problem> problems;            ///< not empty, all different
};

/// `file` names the text in errors. Throws Error(invalid_argument) with file and line for anything it does not know.
[[nodiscard]] Suite parse_suite(std::string_view text, const std::string& name, const std::string& file);

/// A built-in suite by name ("origin"), or a file by path. Throws Error naming the existing suites.
[[nodiscard]] Suite load_suite(const std::string& name_or_path);

[[nodiscard]] std::vector<std::string> built_in_suites();

}  // namespace thresher::arena
