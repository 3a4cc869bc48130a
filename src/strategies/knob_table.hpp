#pragma once
/// One table per configuration struct, from which its parser, printed form, C++ text, validation and help derive.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "thresher/error.hpp"
#include "thresher/knobs.hpp"

namespace thresher::strategies {

/// The documentation of a knob.
struct KnobHelp {
  std::string_view name;
  std::string_view help;             ///< one line
  std::vector<std::string> allowed;  ///< every value that it accepts
};

/// The name of one member of Config, its allowed values, and its C++ spelling.
template <class Config>
struct Knob {
  std::string_view name;  ///< the member's name too
  std::string_view help;
  std::vector<std::string> allowed;                         ///< empty: the problem determines it, not the user
  std::function<std::string(const Config&)> text;           ///< in the spelling of `allowed`
  std::function<void(Config&, const std::string&)> assign;  ///< from one of `allowed`
  std::function<std::string(const Config&)> spelling;       ///< a C++ expression; null: the code does not depend on it
  bool is_flag = false;                                     ///< 1 and 0 are read as true and false
  std::function<bool(const Config&)> applies{};             ///< null: to every configuration

  [[nodiscard]] bool is_chosen() const { return !allowed.empty(); }
};

/// "1, 2, 4"; for many values the first and the last.
inline std::string listed(const std::vector<std::string>& values) {
  constexpr std::size_t many = 32;
  return values.size() < many ? fmt::format("{}", fmt::join(values, ", "))
                              : fmt::format("{}, {}, …, {}", values[0], values[1], values.back());
}

/// An integer out of `allowed`.
template <class Config>
Knob<Config> number(std::string_view name, int Config::* member, std::initializer_list<int> allowed,
                    std::string_view help) {
  std::vector<std::string> values;
  for (const int value : allowed) {
    values.push_back(std::to_string(value));
  }
  const auto text = [member](const Config& config) { return std::to_string(config.*member); };
  return {name,
          help,
          std::move(values),
          text,
          [member](Config& config, const std::string& value) { config.*member = std::stoi(value); },
          text};
}

/// Integers from `first` to `last`, `step` apart.
template <class Config>
Knob<Config> range(std::string_view name, int Config::* member, int first, int last, int step, std::string_view help) {
  Knob<Config> knob = number(name, member, {}, help);
  for (int value = first; value <= last; value += step) {
    knob.allowed.push_back(std::to_string(value));
  }
  return knob;
}

template <class Config>
Knob<Config> flag(std::string_view name, bool Config::* member, std::string_view help) {
  const auto text = [member](const Config& config) { return std::string(config.*member ? "true" : "false"); };
  return {name,
          help,
          {"false", "true"},
          text,
          [member](Config& config, const std::string& value) { config.*member = value == "true"; },
          text,
          true};
}

/// An enumeration whose C++ enumerators have the names that users write. `type` is its name in C++.
template <class Config, class Enum>
Knob<Config> choice(std::string_view name, Enum Config::* member, std::string_view type,
                    std::vector<std::pair<std::string, Enum>> values, std::string_view help) {
  std::vector<std::string> allowed;
  for (const auto& value : values) {
    allowed.push_back(value.first);
  }
  const auto text = [member, values](const Config& config) {
    const auto found =
        std::find_if(values.begin(), values.end(), [&](const auto& one) { return one.second == config.*member; });
    return found == values.end() ? std::string() : found->first;
  };
  return {name,
          help,
          std::move(allowed),
          text,
          [member, values](Config& config, const std::string& value) {
            const auto found =
                std::find_if(values.begin(), values.end(), [&](const auto& one) { return one.first == value; });
            config.*member = found->second;
          },
          [type, text](const Config& config) { return fmt::format("{}::{}", type, text(config)); }};
}

/// A member that follows from the problem: it has a C++ spelling, but users do not choose it.
template <class Config>
Knob<Config> from_problem(Knob<Config> knob) {
  knob.allowed.clear();
  return knob;
}

/// A member that the launch reads and the code does not: two values of it are one kernel.
template <class Config>
Knob<Config> of_launch(Knob<Config> knob) {
  knob.spelling = nullptr;
  return knob;
}

/// A knob of some configurations. Others keep its default value, and their users do not see it.
template <class Config>
Knob<Config> only_where(bool (*applies)(const Config&), Knob<Config> knob) {
  knob.applies = applies;
  return knob;
}

/// The members of Config in the order of their declaration.
template <class Config>
class KnobTable {
 public:
  /// `type` is Config's name in C++.
  KnobTable(std::string_view type, std::vector<Knob<Config>> knobs) : type_(type), knobs_(std::move(knobs)) {}

  [[nodiscard]] std::vector<KnobHelp> help() const {
    std::vector<KnobHelp> lines;
    for (const Knob<Config>& knob : knobs_) {
      if (knob.is_chosen()) {
        lines.push_back({knob.name, knob.help, knob.allowed});
      }
    }
    return lines;
  }

  /// Every knob of `config`.
  [[nodiscard]] Knobs knobs(const Config& config) const {
    Knobs all;
    for (const Knob<Config>& knob : knobs_) {
      if (is_offered(knob, config)) {
        all.set(std::string(knob.name), knob.text(config));
      }
    }
    return all;
  }

  /// `config` with `knobs` in place of its own. Throws Error(invalid_argument) that names `strategy`, the knob, its
  /// value and the allowed ones.
  [[nodiscard]] Config with(Config config, const Knobs& knobs, std::string_view strategy) const {
    for (const auto& [name, value] : knobs) {
      const Knob<Config>& knob = find(name, config, strategy);
      const std::string meant = knob.is_flag && value == "1" ? "true" : knob.is_flag && value == "0" ? "false" : value;
      if (std::find(knob.allowed.begin(), knob.allowed.end(), meant) == knob.allowed.end()) {
        throw Error(ErrorCode::invalid_argument, fmt::format("the knob {} of strategy {} is {}, expected one of {}",
                                                             name, strategy, value, listed(knob.allowed)));
      }
      knob.assign(config, meant);
    }
    return config;
  }

  /// "Config{.stages = 4, …}" with every member that the code depends on: the template argument of a kernel.
  [[nodiscard]] std::string spelling(const Config& config) const {
    std::vector<std::string> members;
    for (const Knob<Config>& knob : knobs_) {
      if (knob.spelling) {
        members.push_back(fmt::format(".{} = {}", knob.name, knob.spelling(config)));
      }
    }
    return fmt::format("{}{{{}}}", type_, fmt::join(members, ", "));
  }

  [[nodiscard]] std::size_t size() const noexcept { return knobs_.size(); }

 private:
  static bool is_offered(const Knob<Config>& knob, const Config& config) {
    return knob.is_chosen() && (!knob.applies || knob.applies(config));
  }

  const Knob<Config>& find(const std::string& name, const Config& config, std::string_view strategy) const {
    const auto knob = std::find_if(knobs_.begin(), knobs_.end(), [&](const Knob<Config>& one) {
      return one.name == name && is_offered(one, config);
    });
    if (knob == knobs_.end()) {
      std::vector<std::string_view> names;
      for (const Knob<Config>& one : knobs_) {
        if (is_offered(one, config)) {
          names.push_back(one.name);
        }
      }
      throw Error(ErrorCode::invalid_argument, fmt::format("the strategy {} has no knob {}, expected one of {}",
                                                           strategy, name, fmt::join(names, ", ")));
    }
    return *knob;
  }

  std::string_view type_;
  std::vector<Knob<Config>> knobs_;
};

namespace detail {
struct AnyMember {
  template <class Value>
  constexpr operator Value() const;  // NOLINT: only ever named in an unevaluated operand
};
template <class Aggregate, class... Members>
consteval std::size_t member_count() {
  if constexpr (requires { Aggregate{Members{}..., AnyMember{}}; }) {
    return member_count<Aggregate, Members..., AnyMember>();
  } else {
    return sizeof...(Members);
  }
}
}  // namespace detail

/// The number of members of an aggregate: a table with as many knobs is complete (a test of each strategy checks it).
template <class Aggregate>
inline constexpr std::size_t member_count = detail::member_count<Aggregate>();

}  // namespace thresher::strategies
