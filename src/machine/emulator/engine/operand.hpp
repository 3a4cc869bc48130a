#pragma once
/// The positions of a wgmma operand's elements in shared memory.
#include <cstdint>

namespace thresher::emulator {

/// An operand tile from its 64-bit descriptor: `extent` rows (m or n) by 32 bytes of k, as 16-byte chunks.
class Operand {
 public:
  Operand(std::uint64_t descriptor, bool mn_major, std::uint32_t extent);

  /// K-major: extent × 2 chunks; chunk c of row r has index 2r + c and holds consecutive k. MN-major (16-bit elements):
  /// 16 × extent/8 chunks; chunk j of column k has index k·extent/8 + j and holds 8 consecutive rows.
  [[nodiscard]] std::uint32_t chunks() const { return mn_major_ ? 2 * extent_ : 2 * extent_; }
  [[nodiscard]] std::uint32_t address(std::uint32_t chunk) const;
  /// The tile starts at a swizzle atom, except for a step along the contiguous dimension.
  [[nodiscard]] bool aligned() const;

 private:
  [[nodiscard]] std::uint32_t linear(std::uint32_t chunk) const;

  std::uint32_t start_;
  std::uint32_t leading_;
  std::uint32_t stride_;
  std::uint32_t swizzle_bits_;  // 0…3; the span is 16 << swizzle_bits_
  bool mn_major_;
  std::uint32_t extent_;
};

}  // namespace thresher::emulator
