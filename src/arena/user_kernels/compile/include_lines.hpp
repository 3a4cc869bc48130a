#pragma once
/// Finds the include directives of a source.
#include <string>
#include <string_view>
#include <vector>

namespace thresher::arena::user_kernels {

/// The operands of #include and similar directives, in line order: "\"tile.h\"", "<cuda_fp16.h>", "WHERE". Lines joined
/// by a backslash are one, comments are blank, and conditions are ignored.
[[nodiscard]] std::vector<std::string> include_lines(std::string_view text);

}  // namespace thresher::arena::user_kernels
