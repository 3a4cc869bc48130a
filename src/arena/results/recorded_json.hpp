#pragma once
/// JSON that was recorded, and that somebody may have changed since.
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace thresher::arena {

/// Throws Error(invalid_argument) for text that is nested deeper than anything that is recorded: whoever prints it
/// again would call itself for every level.
void check_depth(std::string_view json);

[[noreturn]] void fail_as_damaged(const nlohmann::json::exception& error);

/// What `read` makes of recorded JSON; Error(invalid_argument) where that has another form than it was written in.
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
