#pragma once
/// Tensor maps of the emulator: the counterpart of the driver's encoder, and the addresses that a box accesses.
#include <array>
#include <cstdint>

#include "machine/tensor_map.hpp"

namespace thresher::emulator {

/// Throws thresher::Error where the driver would reject it: rank, extents, strides, alignment, box, swizzle.
[[nodiscard]] machine::TensorMap encode_tensor_map(const machine::TensorMapDescription& description);

/// The description behind an encoded map; false when `map` was not made by encode_tensor_map.
[[nodiscard]] bool decode_tensor_map(const machine::TensorMap& map, machine::TensorMapDescription& description);

/// The physical address of the byte at `address` of a swizzled tile.
[[nodiscard]] constexpr std::uint32_t swizzled(std::uint32_t address, machine::Swizzle swizzle) {
  const std::uint32_t mask = (1U << static_cast<std::uint32_t>(swizzle)) - 1U;
  return address ^ ((address >> 7 & mask) << 4);
}

/// One row of a box (its contiguous dimension).
struct BoxRow {
  std::uint64_t address = 0;  ///< of the row's first in-bounds element
  std::uint32_t first = 0;    ///< bytes of the row before it
  std::uint32_t bytes = 0;    ///< in bounds; 0 for a row that is entirely outside
  std::uint32_t shared = 0;   ///< offset of the row in the box, before swizzling
};

/// A box at a position of the tensor, row by row.
class Box {
 public:
  Box(const machine::TensorMapDescription& map, const std::int32_t* at);
  [[nodiscard]] std::uint32_t rows() const { return rows_; }
  [[nodiscard]] std::uint32_t row_bytes() const { return row_bytes_; }
  [[nodiscard]] std::uint32_t bytes() const { return rows_ * row_bytes_; }
  [[nodiscard]] BoxRow row(std::uint32_t index) const;

 private:
  machine::TensorMapDescription map_;
  std::array<std::int64_t, 5> at_{};
  std::uint32_t rows_ = 1;
  std::uint32_t row_bytes_ = 0;
};

}  // namespace thresher::emulator
