#pragma once
/// One problem of a suite: an operation with its shape, formats and options.
#include <any>
#include <concepts>
#include <string>
#include <utility>

#include "thresher/error.hpp"

namespace thresher::arena {

class Operation;

/// A value that remembers whose it is. Which operations there are and what their problems hold, only their own folders
/// know (arena/<operation>/task.hpp).
class Problem {
 public:
  /// `task` is what `operation` calls a problem.
  template <std::equality_comparable Task>
  Problem(const Operation& operation, Task task)
      : operation_(&operation), task_(std::move(task)), is_same_([](const std::any& one, const std::any& other) {
          return std::any_cast<const Task&>(one) == std::any_cast<const Task&>(other);
        }) {}

  [[nodiscard]] const Operation& operation() const noexcept { return *operation_; }

  /// The problem in its operation's words. Throws Error(internal) when it is another operation's.
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

/// Operation::label of it: different problems of an operation have different labels.
[[nodiscard]] std::string label(const Problem& problem);

}  // namespace thresher::arena
