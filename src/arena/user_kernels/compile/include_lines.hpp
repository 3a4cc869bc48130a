#pragma once
/// What a source includes, as it is written.
#include <string>
#include <string_view>
#include <vector>

namespace thresher::arena::user_kernels {

/// What stands behind #include and its kin, in the order of the lines: "\"tile.h\"", "<cuda_fp16.h>", "WHERE". Lines
/// that a backslash joins are one, comments are blank, and conditions count for nothing.
[[nodiscard]] std::vector<std::string> include_lines(std::string_view text);

}  // namespace thresher::arena::user_kernels
