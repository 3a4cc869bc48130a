#pragma once
/// Tasks as bytes, for another process of this very program. A task names its members in `members`.
#include <cstring>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "thresher/error.hpp"

namespace thresher::arena {

namespace task_bytes {

template <class T>
  requires std::is_trivially_copyable_v<T>
void put(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

template <class T>
void put(std::string& bytes, const std::vector<T>& values) {
  put(bytes, values.size());
  for (const T& value : values) {
    put(bytes, value);
  }
}

template <class T>
  requires std::is_trivially_copyable_v<T>
void take(std::string_view& bytes, T& value) {
  if (bytes.size() < sizeof(T)) {
    throw Error(ErrorCode::internal, "a problem's bytes end too early");
  }
  std::memcpy(&value, bytes.data(), sizeof(T));
  bytes.remove_prefix(sizeof(T));
}

template <class T>
void take(std::string_view& bytes, std::vector<T>& values) {
  std::size_t count = 0;
  take(bytes, count);
  values.clear();
  for (; count > 0; --count) {
    take(bytes, values.emplace_back());
  }
}

}  // namespace task_bytes

template <class Task>
[[nodiscard]] std::string bytes_of(const Task& task) {
  std::string bytes;
  std::apply([&](const auto&... member) { (task_bytes::put(bytes, member), ...); }, Task::members(task));
  return bytes;
}

template <class Task>
[[nodiscard]] Task task_from(std::string_view bytes) {
  Task task;
  std::apply([&](auto&... member) { (task_bytes::take(bytes, member), ...); }, Task::members(task));
  return task;
}

}  // namespace thresher::arena
