#pragma once
/// Whole numbers of groups, for host code.
#include <cstdint>

namespace thresher {

/// How many groups of `size` hold `count` things; `count` is not negative, `size` positive.
[[nodiscard]] constexpr std::int64_t ceil_div(std::int64_t count, std::int64_t size) noexcept {
  return (count + size - 1) / size;
}

/// The least multiple of `step` that is not below `count`.
[[nodiscard]] constexpr std::int64_t round_up(std::int64_t count, std::int64_t step) noexcept {
  return ceil_div(count, step) * step;
}

}  // namespace thresher
