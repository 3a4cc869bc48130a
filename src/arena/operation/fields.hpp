#pragma once
/// Tables of the parts of an operation's problems: suites list their values, command lines choose one, and the
/// emulator's arguments repeat it.
#include <algorithm>
#include <array>
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "arena/operation/operation.hpp"
#include "arena/operation/problem_table.hpp"

namespace thresher::arena {

template <class Enum, std::size_t count>
std::vector<std::string> names_of(const std::array<Enum, count>& values) {
  std::vector<std::string> names;
  for (const Enum value : values) {
    names.emplace_back(name(value));
  }
  return names;
}

/// The value of that name, which is one of them.
template <class Enum, std::size_t count>
Enum value_of(const std::array<Enum, count>& values, const std::string& wanted) {
  for (const Enum value : values) {
    if (name(value) == wanted) {
      return value;
    }
  }
  return values.front();
}

template <class Task>
struct Field {
  std::string key;                   ///< of suites: "hidden_size"; the option is "--hidden-size"
  std::string help;                  ///< of the option
  std::vector<std::string> allowed;  ///< by the option; empty: a whole number
  bool is_extent = false;            ///< a part of the problem's shape
  std::function<void(const ProblemTable&, Lists&, Task&)> list{};  ///< a suite's values; null: it is no key
  std::function<void(Task&, const std::string&)> set{};            ///< what the option says
  std::function<std::string(const Task&)> text{};                  ///< what the option would say; null: it says nothing

  [[nodiscard]] std::string option() const {
    std::string name = "--" + key;
    std::replace(name.begin(), name.end(), '_', '-');
    return name;
  }
};

template <class Task>
using Fields = std::vector<Field<Task>>;

/// Where a task has a member of its problem.
template <class Owner, class Value>
auto in_problem(Value Owner::* member) {
  return [member](auto& task) -> auto& { return task.problem.*member; };
}

/// An extent of at least 1. `place(task)` refers to it.
template <class Task, class Place>
Field<Task> extent(const char* key, const char* help, const Place& place) {
  return {.key = key,
          .help = help,
          .allowed = {},
          .is_extent = true,
          .list = [=](const ProblemTable& tables, Lists& lists,
                      Task& task) { lists.over(key, tables.extents(key, 1), place(task)); },
          .set = [=](Task& task, const std::string& text) { place(task) = std::stoll(text); },
          .text = [=](const Task& task) { return std::to_string(place(task)); }};
}

/// One of an enumeration.
template <class Task, class Enum, std::size_t count, class Place>
Field<Task> choice(const char* key, const char* help, const std::array<Enum, count>& values, const Place& place) {
  return {.key = key,
          .help = help,
          .allowed = names_of(values),
          .list =
              [=](const ProblemTable& tables, Lists& lists, Task& task) {
                lists.over(key, choices<Enum>(tables, key, named(values), std::nullopt), place(task));
              },
          .set = [=](Task& task, const std::string& text) { place(task) = value_of(values, text); },
          .text = [=](const Task& task) { return std::string(name(place(task))); }};
}

template <class Task>
const Field<Task>& field_of(const Fields<Task>& fields, std::string_view key) {
  return *std::find_if(fields.begin(), fields.end(), [&](const Field<Task>& field) { return field.key == key; });
}

/// Reads a suite's values of these fields.
template <class Task>
void read_lists(const Fields<Task>& fields, std::initializer_list<const char*> keys, const ProblemTable& tables,
                Lists& lists, Task& task) {
  for (const char* const key : keys) {
    field_of(fields, key).list(tables, lists, task);
  }
}

/// `fit` makes the rest of a task fit an extent that was set, `fit_choice` anything else.
template <class Task>
std::vector<ProblemOption> options_of(const Fields<Task>& fields, Task (*fit)(Task), Task (*fit_choice)(Task)) {
  std::vector<ProblemOption> options;
  for (const Field<Task>& field : fields) {
    options.push_back({.name = field.option(),
                       .help = field.help,
                       .allowed = field.allowed,
                       .is_extent = field.is_extent,
                       .set = [set = field.set, make_fit = field.is_extent ? fit : fit_choice](
                                  Problem& problem, const std::string& text) {
                         auto& task = problem.as<Task>();
                         set(task, text);
                         task = make_fit(std::move(task));
                       }});
  }
  return options;
}

/// " --m 64 --n 128": the options that make `task`.
template <class Task>
std::string arguments_of(const Fields<Task>& fields, const Task& task) {
  std::string text;
  for (const Field<Task>& field : fields) {
    text += field.text ? fmt::format(" {} {}", field.option(), field.text(task)) : "";
  }
  return text;
}

}  // namespace thresher::arena
