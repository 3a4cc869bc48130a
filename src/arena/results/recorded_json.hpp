#pragma once
/// Reads recorded JSON, which may have been changed since.
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace thresher::arena {

/// Throws Error(invalid_argument) for text that is nested deeper than any recorded text. A program that prints it would
/// recurse once per level.
void check_depth(std::string_view json);

[[noreturn]] void fail_as_damaged(const nlohmann::json::exception& error);

/// Applies `read` to recorded JSON; throws Error(invalid_argument) where its form is not the one that was written.
template <class Read>
auto read_recorded(Read&& read) {
  try {
    return read();
  } catch (const nlohmann::json::exception& error) {
    fail_as_damaged(error);
  }
}

template <class Json = nlohmann::json>
[[nodiscard]] Json parse_recorded(const std::string& text) {
  check_depth(text);
  return read_recorded([&] { return Json::parse(text); });
}

}  // namespace thresher::arena
