#pragma once
/// Notes that a command prints beside its results.
#include <cstdio>
#include <string_view>

namespace thresher {

/// Writes `text` at once. A failure to write is ignored: there is no place to report it, and the work continues.
void print_note(std::FILE* to, std::string_view text) noexcept;

}  // namespace thresher
