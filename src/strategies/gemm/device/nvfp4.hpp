#pragma once
/// A raw NVFP4 matrix in global memory, and how single values enter and leave NVFP4.
#include "machine/global.hpp"
#include "machine/numbers.hpp"
#include "strategies/gemm/device/words.hpp"

namespace thresher::strategies::gemm {

using machine::Global;

/// A row-major NVFP4 matrix, which may have gaps between its rows. Kernels that prepare tokens take rows of 16 bits in
/// it too.
struct Nvfp4Matrix {
  Global<u8> values;  ///< two NVFP4 values a byte, low nibble first
  Global<u8> scales;
  u64 row_bytes = 0;  ///< of values
  u32 rows = 0;
  u32 scale_columns = 0;   ///< k/16
  u32 scales_blocked = 0;  ///< 1 for the blocked layout
  u32 scale_stride = 0;    ///< scales from one row to the next, row by row
  u32 slot_rows = 0;       ///< of a stack of matrices with blocked scales: rows of each, and bytes of its scales
  u32 slot_scales = 0;
};

TH_DEVICE i64 scale_index(const Nvfp4Matrix& matrix, u32 row, u32 column) {
  if (matrix.scales_blocked == 0) {
    return static_cast<i64>(row) * matrix.scale_stride + column;
  }
  i64 first = 0;
  if (matrix.slot_rows != 0) {
    const u32 slot = row / matrix.slot_rows;
    first = static_cast<i64>(slot) * matrix.slot_scales;
    row -= slot * matrix.slot_rows;
  }
  const i64 tile = static_cast<i64>(row / 128) * ((matrix.scale_columns + 3) / 4) + column / 4;
  return first + tile * 512 + row % 32 * 16 + row % 128 / 32 * 4 + column % 4;
}

TH_DEVICE u32 scale_code(const Nvfp4Matrix& matrix, u32 row, u32 column) {
  return matrix.scales.load(scale_index(matrix, row, column));
}

/// The first value of group `column` of a row.
TH_DEVICE Global<u8> group_address(const Nvfp4Matrix& matrix, u32 row, u32 column) {
  return matrix.values.offset(static_cast<i64>(row) * matrix.row_bytes + column * 8);
}

/// The 16 values of group `column` of a row, low nibble first.
TH_DEVICE machine::Vector<u32, 2> group_codes(const Nvfp4Matrix& matrix, u32 row, u32 column) {
  const Global<u8> from = group_address(matrix, row, column);
  if (matrix.row_bytes % 8 == 0) {
    return from.as<machine::Vector<u32, 2>>().load();
  }
  machine::Vector<u32, 2> codes{};
  TH_UNROLL
  for (u32 i = 0; i < 8; ++i) {
    codes.at[i / 4] |= static_cast<u32>(from.load(i)) << (i % 4 * 8);
  }
  return codes;
}

/// Four values: a quarter of a group.
TH_DEVICE u32 quarter_group_codes(const Nvfp4Matrix& matrix, u32 row, u32 column, u32 quarter) {
  const Global<u8> from = group_address(matrix, row, column).offset(quarter * 2);
  if (matrix.row_bytes % 2 == 0) {
    return from.as<machine::u16>().load();
  }
  return from.load(0) | static_cast<u32>(from.load(1)) << 8;
}

/// Brings the values and the scale of a group towards L2.
TH_DEVICE void prefetch_group(const Nvfp4Matrix& matrix, u32 row, u32 column) {
  group_address(matrix, row, column).prefetch();
  matrix.scales.prefetch(scale_index(matrix, row, column));
}

/// The low four values of `codes` times their scale in fp16: exact. The halves of e2m1's magnitudes have nothing in
/// their low bytes, so a permutation with the values as selectors finds the high ones.
TH_DEVICE machine::Vector<u32, 2> widen_four(u32 codes, u32 scale) {
  using machine::bits::permute;
  const u32 magnitudes = permute(0x3E3C3800U, 0x46444240U, codes & 0x7777U);
  const u32 signs = permute(0x00008000U, 0, codes >> 3 & 0x1111U);
  const u32 high_bytes = magnitudes | signs;
  // Selector 4 is a zero byte.
  return {{machine::packed::multiply<machine::Half>(permute(high_bytes, 0, 0x1404U), scale),
           machine::packed::multiply<machine::Half>(permute(high_bytes, 0, 0x3424U), scale)}};
}

/// The nearest e2m1 magnitude, ties to even ones; x is not negative.
TH_DEVICE constexpr u32 nearest_magnitude(float x) {
  return (x > 0.25F ? 1U : 0U) + (x >= 0.75F ? 1U : 0U) + (x > 1.25F ? 1U : 0U) + (x >= 1.75F ? 1U : 0U) +
         (x > 2.5F ? 1U : 0U) + (x >= 3.5F ? 1U : 0U) + (x > 5.0F ? 1U : 0U);
}

}  // namespace thresher::strategies::gemm
