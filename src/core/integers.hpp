#pragma once
/// Integer division into groups, and sizes that cannot overflow, for host code.
#include <cstdint>
#include <limits>
#include <span>

namespace thresher {

/// The number of groups of `size` that hold `count` things; `count` is not negative, `size` is positive.
[[nodiscard]] constexpr std::int64_t ceil_div(std::int64_t count, std::int64_t size) noexcept {
  return count / size + (count % size != 0 ? 1 : 0);
}

/// Stands for a size that does not fit 63 bits. No memory has it, so every allocation or check rejects it.
inline constexpr std::int64_t too_large = std::numeric_limits<std::int64_t>::max();

/// a·b for sizes, which are not negative; too_large when that does not fit or one of them is too_large.
[[nodiscard]] constexpr std::int64_t size_product(std::int64_t a, std::int64_t b) noexcept {
  std::int64_t product = 0;
  return a == too_large || b == too_large || __builtin_mul_overflow(a, b, &product) ? too_large : product;
}

/// The product of extents: 0 when one of them is 0, however large the others are.
[[nodiscard]] constexpr std::int64_t size_product(std::span<const std::int64_t> extents) noexcept {
  std::int64_t product = 1;
  for (const std::int64_t extent : extents) {
    if (extent == 0) {
      return 0;
    }
    product = size_product(product, extent);
  }
  return product;
}

/// The smallest multiple of `step` that is not below `count`.
[[nodiscard]] constexpr std::int64_t round_up(std::int64_t count, std::int64_t step) noexcept {
  return size_product(ceil_div(count, step), step);
}

}  // namespace thresher
