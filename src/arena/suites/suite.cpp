#include "arena/suites/suite.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "arena/config/config.hpp"
#include "arena/operation/problem_table.hpp"
#include "arena/operations.hpp"
#include "core/input_file.hpp"
#include "core/printable.hpp"
#include "embedded/suite_files.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

std::vector<Distribution> read_distributions(const ConfigTable& top) {
  std::vector<Distribution> distributions;
  for (const std::string& wanted : top.texts("distributions")) {
    const std::optional<Distribution> distribution = distribution_from_name(wanted);
    if (!distribution) {
      std::vector<std::string_view> names;
      std::transform(all_distributions.begin(), all_distributions.end(), std::back_inserter(names),
                     [](Distribution known) { return name(known); });
      top.fail("distributions", fmt::format("has \"{}\", but must be of {}", wanted, fmt::join(names, ", ")));
    }
    if (std::find(distributions.begin(), distributions.end(), *distribution) != distributions.end()) {
      top.fail("distributions", fmt::format("has \"{}\" twice", wanted));
    }
    distributions.push_back(*distribution);
  }
  return distributions;
}

/// Rejects a distribution that no problem supports, which would otherwise be skipped silently.
void check_offered(const ConfigTable& top, const Suite& suite) {
  const Operation& operation = suite.problems.front().operation();
  const auto offered = [&](Distribution distribution) {
    return std::any_of(suite.problems.begin(), suite.problems.end(),
                       [&](const Problem& problem) { return operation.offers(problem, distribution); });
  };
  for (const Distribution distribution : suite.distributions) {
    if (!offered(distribution)) {
      std::vector<std::string_view> names;
      for (const Distribution known : all_distributions) {
        if (offered(known)) {
          names.push_back(name(known));
        }
      }
      top.fail("distributions", fmt::format("has \"{}\", but for these problems there is {}", name(distribution),
                                            fmt::join(names, ", ")));
    }
  }
}

constexpr std::array caches{Named<bool>{"cold", false}, Named<bool>{"warm", true}};

const Operation& operation_of(const ConfigTable& top) {
  const std::string wanted = top.text("operation");
  for (const Operation* operation : operations()) {
    if (operation->name() == wanted) {
      return *operation;
    }
  }
  top.fail("operation", fmt::format("is \"{}\", but must be one of {}", printable(wanted.substr(0, 100)),
                                    fmt::join(operation_names(), ", ")));
}

std::string suite_name(std::string_view path) { return std::filesystem::path(path).stem().string(); }

}  // namespace

Suite parse_suite(std::string_view text, const std::string& name, const std::string& file) {
  const ConfigTable top = ConfigTable::parse(text, file);
  Suite suite;
  suite.name = name;
  suite.text = text;
  suite.title = top.text_or("title", name);
  suite.timed = top.boolean_or("timed", true);
  const Operation& operation = operation_of(top);
  suite.warm = choose(top, "cache", top.text_or("cache", "cold"), caches);
  if (suite.warm && !suite.timed) {
    top.fail("cache", "is \"warm\", but `timed` is false: nothing is timed, so leave one of them out");
  }
  suite.distributions = read_distributions(top);
  const std::optional<ConfigTable> defaults = top.optional_table("defaults");
  for (const ConfigTable& problem : top.tables("problem")) {
    operation.add_problems({problem, defaults ? &*defaults : nullptr}, suite.problems);
    problem.reject_unknown();
  }
  if (suite.problems.empty()) {
    top.fail("problem", "is missing: a suite needs at least one [[problem]]");
  }
  check_offered(top, suite);
  if (defaults) {
    defaults->reject_unknown();
  }
  top.reject_unknown();
  return suite;
}

std::vector<std::string> built_in_suites() {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : embedded::suite_files()) {
    names.push_back(suite_name(file.name));
  }
  return names;
}

Suite load_suite(const std::string& name_or_path) {
  for (const EmbeddedFile& file : embedded::suite_files()) {
    if (suite_name(file.name) == name_or_path) {
      return parse_suite(file.text, name_or_path, "suites/" + name_or_path + ".toml");
    }
  }
  const InputFile file = read_input_file(name_or_path);
  if (!file.bytes) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("suite {}: it is none of the built-in suites {}, and {}", name_or_path,
                            fmt::join(built_in_suites(), ", "), file.obstacle));
  }
  return parse_suite(*file.bytes, suite_name(name_or_path), name_or_path);
}

}  // namespace thresher::arena
