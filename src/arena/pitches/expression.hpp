#pragma once
/// Whole numbers that depend on a problem's extents, as pitches write them: "div_up(n, 128) * 2".
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace thresher::arena::user_kernels {

/// The extents of a problem by name, as m, n and k.
using Extents = std::vector<std::pair<std::string, std::int64_t>>;

/// Supports + - * / (rounding towards zero) with their usual precedence, parentheses, whole numbers, the extents, and
/// the functions div_up(a, b), min(a, b) and max(a, b). Throws Error(invalid_argument) that quotes the text and names
/// the fault, including division by zero and numbers beyond 2^62.
[[nodiscard]] std::int64_t evaluate(std::string_view text, const Extents& extents);

}  // namespace thresher::arena::user_kernels
