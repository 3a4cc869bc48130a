#pragma once
/// Keys of a suite's problems: a problem's own value or the suite's default, and names that stand for values.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "arena/config/config.hpp"
#include "arena/operation/problem.hpp"
#include "core/printable.hpp"

namespace thresher::arena {

/// One [[problem]] and the suite's [defaults].
struct ProblemTable {
  const ConfigTable& problem;
  const ConfigTable* defaults;  ///< null without one

  /// The table that holds `key`; the problem's when neither does.
  [[nodiscard]] const ConfigTable& holder(const std::string& key) const {
    const bool in_defaults = defaults != nullptr && defaults->has(key);
    return problem.has(key) || !in_defaults ? problem : *defaults;
  }
  [[nodiscard]] bool has(const std::string& key) const { return holder(key).has(key); }

  /// One value or a list, each from `least` to 2²⁴.
  [[nodiscard]] std::vector<std::int64_t> extents(const std::string& key, std::int64_t least) const {
    constexpr std::int64_t most = std::int64_t{1} << 24;
    const ConfigTable& table = holder(key);
    std::vector<std::int64_t> values = table.integers(key);
    for (const std::int64_t value : values) {
      if (value < least || value > most) {
        table.fail(key, fmt::format("is {}, but must lie between {} and {}", value, least, most));
      }
    }
    return values;
  }
};

template <class Value>
struct Named {
  std::string_view name;
  Value value;
};

/// The values of an enumeration under their names.
template <class Enum, std::size_t count>
std::array<Named<Enum>, count> named(const std::array<Enum, count>& values) {
  std::array<Named<Enum>, count> all;
  std::transform(values.begin(), values.end(), all.begin(), [](Enum value) { return Named<Enum>{name(value), value}; });
  return all;
}

template <class Value, std::size_t count>
Value choose(const ConfigTable& table, const std::string& key, const std::string& wanted,
             const std::array<Named<Value>, count>& choices) {
  std::vector<std::string_view> names;
  for (const Named<Value>& choice : choices) {
    if (choice.name == wanted) {
      return choice.value;
    }
    names.push_back(choice.name);
  }
  table.fail(key,
             fmt::format("is \"{}\", but must be one of {}", printable(wanted.substr(0, 100)), fmt::join(names, ", ")));
}

template <class Value, std::size_t count>
std::vector<Value> choices(const ProblemTable& tables, const std::string& key,
                           const std::array<Named<Value>, count>& known, std::optional<Value> fallback) {
  const ConfigTable& table = tables.holder(key);
  if (fallback && !table.has(key)) {
    return {*fallback};
  }
  std::vector<Value> values;
  for (const std::string& wanted : table.texts(key)) {
    values.push_back(choose(table, key, wanted, known));
  }
  return values;
}

/// Lists that multiply, each into its place of a task.
class Lists {
 public:
  template <class Value, class Place>
  void over(const char* key, std::vector<Value> values, Place& place) {
    loops_[key] = [values = std::move(values), &place](const Body& body) {
      for (const auto& value : values) {
        place = value;
        body();
      }
    };
  }

  /// `body` with the places set to everything that they multiply to. `order` names lists, the outermost first; those
  /// that there are not are passed over.
  void each(const std::vector<std::string>& order, const std::function<void()>& body) const {
    Body all = body;
    for (auto key = order.rbegin(); key != order.rend(); ++key) {
      if (const auto found = loops_.find(*key); found != loops_.end()) {
        all = [&loop = found->second, inner = std::move(all)] { loop(inner); };
      }
    }
    all();
  }

 private:
  using Body = std::function<void()>;
  std::map<std::string, std::function<void(const Body&)>> loops_;
};

/// Limits the product of the lists: a suite that could not be judged in a day is a mistake of its author.
inline constexpr std::size_t max_problems = 4096;

/// Appends the problem; throws at the table's `key` for a duplicate and for too many problems.
inline void add_once(const ProblemTable& tables, const std::string& key, const Problem& problem,
                     std::vector<Problem>& problems) {
  if (std::find(problems.begin(), problems.end(), problem) != problems.end()) {
    tables.problem.fail(key, fmt::format("makes the problem {} a second time", label(problem)));
  }
  if (problems.size() == max_problems) {
    tables.problem.fail(key, fmt::format("makes more than the {} problems that a suite may have", max_problems));
  }
  problems.push_back(problem);
}

}  // namespace thresher::arena
