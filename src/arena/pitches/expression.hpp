#pragma once
/// Whole numbers that depend on a problem's shape, as pitches write them: "div_up(n, 128) * 2".
#include <cstdint>
#include <string>
#include <string_view>

namespace thresher::arena::user_kernels {

struct Shape {
  std::int64_t m = 1;
  std::int64_t n = 1;
  std::int64_t k = 1;
};

/// Supports + - * / (rounding towards zero) with their usual precedence, parentheses, whole numbers, m, n, k, and the
/// functions div_up(a, b), min(a, b) and max(a, b). Throws Error(invalid_argument) that quotes the text and names the
/// fault, including division by zero and numbers beyond 2^62.
[[nodiscard]] std::int64_t evaluate(std::string_view text, const Shape& shape);

}  // namespace thresher::arena::user_kernels
