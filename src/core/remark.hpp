#pragma once
/// What is said beside the results of a command.
#include <cstdio>
#include <string_view>

namespace thresher {

/// Writes `text` at once. What cannot be written is lost: nobody is left to be told, and the work goes on.
void print_note(std::FILE* to, std::string_view text) noexcept;

}  // namespace thresher
