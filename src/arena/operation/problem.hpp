#pragma once
/// One problem of a suite: an operation with its shape, formats and options.
#include <any>
#include <concepts>
#include <string>
#include <utility>

#include "thresher/error.hpp"

namespace thresher::arena {

class Operation;

/// A value with its operation. Only an operation's own folder knows its problems (arena/<operation>/task.hpp).
class Problem {
 public:
  /// `task` is the problem in the operation's own type.
  template <std::equality_comparable Task>
  Problem(const Operation& operation, Task task)
      : operation_(&operation), task_(std::move(task)), is_same_([](const std::any& one, const std::any& other) {
          return std::any_cast<const Task&>(one) == std::any_cast<const Task&>(other);
        }) {}

  [[nodiscard]] const Operation& operation() const noexcept { return *operation_; }

  /// The problem in its operation's own type. Throws Error(internal) when it belongs to another operation.
  template <class Task>
  [[nodiscard]] const Task& as() const {
    return task_of<const Task>(&task_);
  }
  template <class Task>
  [[nodiscard]] Task& as() {
    return task_of<Task>(&task_);
  }

  friend bool operator==(const Problem& one, const Problem& other) {
    return one.operation_ == other.operation_ && one.is_same_(one.task_, other.task_);
  }

 private:
  template <class Task, class Any>
  static Task& task_of(Any* any) {
    if (Task* const task = std::any_cast<std::remove_const_t<Task>>(any)) {
      return *task;
    }
    throw Error(ErrorCode::internal, "a problem was taken for one of another operation");
  }

  const Operation* operation_;
  std::any task_;
  bool (*is_same_)(const std::any&, const std::any&);
};

/// Its Operation::label: different problems of an operation have different labels.
[[nodiscard]] std::string label(const Problem& problem);

}  // namespace thresher::arena
