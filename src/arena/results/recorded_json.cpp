#include "arena/results/recorded_json.hpp"

#include <fmt/format.h>

#include "thresher/error.hpp"

namespace thresher::arena {

void check_depth(std::string_view json) {
  constexpr int deepest = 64;
  int depth = 0;
  bool is_text = false;
  for (std::size_t at = 0; at < json.size(); ++at) {
    const char character = json[at];
    if (is_text) {
      at += character == '\\' ? 1 : 0;
      is_text = character != '"';
    } else if (character == '"') {
      is_text = true;
    } else if (character == '[' || character == '{') {
      if (++depth > deepest) {
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("what was recorded as JSON is nested deeper than {}", deepest));
      }
    } else if (character == ']' || character == '}') {
      --depth;
    }
  }
}

void fail_as_damaged(const nlohmann::json::exception& error) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("what was recorded as JSON is not as it was written (error {} of the parser)", error.id));
}

}  // namespace thresher::arena
