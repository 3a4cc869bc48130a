#include "cpu/operand.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/integers.hpp"
#include "cpu/rows.hpp"
#include "formats/scales.hpp"

namespace thresher::cpu {
namespace {

using formats::scale_block;

/// log2 of the last place of the smallest non-zero value.
int smallest_place(Format format, const ExponentRange& range) noexcept {
  switch (format) {
    case Format::nvfp4: return -10;  // 0.5 × 2^-9
    case Format::fp8_tensor: return -9;
    case Format::fp16: return -24;
    default: return range.smallest_exponent - 127 - 7;
  }
}

constexpr int smallest_normal_exponent = -126;

bool infinity_meets_a_low_plane(Format split, const ExponentRange& other_range) noexcept {
  return bf16_planes(split) > 1 && other_range.infinite;
}

const std::uint8_t* row_of_codes(const Tensor& operand, std::int64_t row, std::int64_t k) noexcept {
  return static_cast<const std::uint8_t*>(operand.data) + row * operand.strides[0] + k;
}

const std::uint16_t* row_of_16_bit(const Tensor& operand, std::int64_t row, std::int64_t k) noexcept {
  return static_cast<const std::uint16_t*>(operand.data) + row * operand.strides[0] + k;
}

/// Calls convert(packed, scales, count, offset from slice.first_k) over one NVFP4 row; scales are contiguous.
template <typename Convert>
void for_each_scaled_piece(const Tensor& operand, const Slice& slice, std::int64_t row, const Convert& convert) {
  const auto* packed = static_cast<const std::uint8_t*>(operand.data) + (row * operand.strides[0] + slice.first_k) / 2;
  const std::int64_t columns = operand.shape[1] / scale_block;
  const std::int64_t first_scale = slice.first_k / scale_block;
  if (operand.scales.layout == ScaleLayout::row_major) {
    convert(packed, operand.scales.codes() + row * columns + first_scale, slice.depth, 0);
    return;
  }
  std::array<std::uint8_t, 64> scales;
  constexpr auto piece_depth = static_cast<std::int64_t>(scales.size()) * scale_block;
  for (std::int64_t k = 0; k < slice.depth; k += piece_depth) {
    const std::int64_t count = std::min(piece_depth, slice.depth - k);
    for (std::int64_t i = 0; i < count / scale_block; ++i) {
      const std::int64_t column = first_scale + k / scale_block + i;
      scales[static_cast<std::size_t>(i)] =
          operand.scales.codes()[formats::scale_offset(row, column, columns, ScaleLayout::blocked)];
    }
    convert(packed + k / 2, scales.data(), count, k);
  }
}

/// One row of FP8 with per-row or per-block scales, one scale's piece after the other.
void fp8_row_to_float32(const Tensor& operand, const Slice& slice, std::int64_t row, float* out) {
  const std::int64_t end = slice.first_k + slice.depth;
  for (std::int64_t k = slice.first_k; k < end;) {
    const std::int64_t next = std::min(end, round_up(k + 1, operand.scales.block.columns));
    e4m3_row_to_float32(row_of_codes(operand, row, k), next - k, formats::fp8_scale(operand, row, k),
                        out + (k - slice.first_k));
    k = next;
  }
}

/// One row of any operand.
void row_to_float32(const Tensor& operand, const Slice& slice, std::int64_t row, float* out) {
  switch (operand.format) {
    case Format::fp16: return fp16_row_to_float32(row_of_16_bit(operand, row, slice.first_k), slice.depth, out);
    case Format::bf16: return bf16_row_to_float32(row_of_16_bit(operand, row, slice.first_k), slice.depth, out);
    case Format::fp8_tensor: return e4m3_row_to_float32(row_of_codes(operand, row, slice.first_k), slice.depth, 1, out);
    case Format::fp8_row:
    case Format::fp8_block: return fp8_row_to_float32(operand, slice, row, out);
    case Format::nvfp4:
      return for_each_scaled_piece(
          operand, slice, row,
          [out](const std::uint8_t* packed, const std::uint8_t* scales, std::int64_t count, std::int64_t offset) {
            nvfp4_row_to_float32(packed, scales, count, out + offset);
          });
    case Format::fp32:
    case Format::fp8_e4m3:
    case Format::int32:
    case Format::uint8: return;  // no operands of products
  }
}

ExponentRange combine(const RangeLanes& lanes) noexcept {
  ExponentRange range;
  for (const std::uint16_t magnitude_minus_1 : lanes.smallest) {
    range.smallest_exponent =
        std::min(range.smallest_exponent, magnitude_minus_1 == 0xFFFF ? 255 : (magnitude_minus_1 + 1) >> 7);
  }
  range.infinite =
      std::any_of(lanes.infinite.begin(), lanes.infinite.end(), [](std::uint16_t met) { return met != 0; });
  return range;
}

void prefetch_bytes(const void* first, std::int64_t count) noexcept {
  constexpr std::int64_t line_bytes = 64;
  for (std::int64_t offset = 0; offset < count; offset += line_bytes) {
    __builtin_prefetch(static_cast<const std::byte*>(first) + offset, 0, 3);
  }
}

/// Rows of the slice that exist in the operand.
std::int64_t present_rows(const Tensor& operand, const Slice& slice) noexcept {
  return std::clamp<std::int64_t>(slice.of.count(operand) - slice.first_row, 0, slice.rows);
}

template <typename Element>
void zero_padding(const Slice& slice, std::int64_t present, Element* out) noexcept {
  if (slice.depth < slice.padded_depth) {
    for (std::int64_t row = 0; row < present; ++row) {
      std::fill_n(out + row * slice.padded_depth + slice.depth, slice.padded_depth - slice.depth, Element{});
    }
  }
  std::fill_n(out + present * slice.padded_depth, (slice.rows - present) * slice.padded_depth, Element{});
}

}  // namespace

void ExponentRange::include(const ExponentRange& other) noexcept {
  smallest_exponent = std::min(smallest_exponent, other.smallest_exponent);
  infinite = infinite || other.infinite;
}

int bf16_planes(Format format) noexcept { return format == Format::fp16 ? 2 : 1; }

bool has_bf16_planes(Format format) noexcept {
  return bits(format) == 16 || format == Format::nvfp4 || format == Format::fp8_tensor;
}

ProductType product_type_of(Format a, Format b) {
  return has_bf16_planes(a) && has_bf16_planes(b) ? native_product_type() : ProductType::float32;
}

ExponentRange to_bf16(const Tensor& operand, const Slice& slice, std::uint16_t* high, std::uint16_t* low) {
  RangeLanes lanes;
  const std::int64_t present = present_rows(operand, slice);
  for (std::int64_t i = 0; i < present; ++i) {
    const std::int64_t row = slice.of[slice.first_row + i];
    std::uint16_t* out = high + i * slice.padded_depth;
    if (row < 0) {
      std::fill_n(out, slice.padded_depth, std::uint16_t{});
      if (operand.format == Format::fp16) {
        std::fill_n(low + i * slice.padded_depth, slice.padded_depth, std::uint16_t{});
      }
    } else if (operand.format == Format::fp8_tensor) {
      e4m3_row_to_bf16(row_of_codes(operand, row, slice.first_k), slice.depth, out);
    } else if (operand.format == Format::nvfp4) {
      for_each_scaled_piece(operand, slice, row,
                            [out](const std::uint8_t* packed, const std::uint8_t* scales, std::int64_t count,
                                  std::int64_t offset) { nvfp4_row_to_bf16(packed, scales, count, out + offset); });
    } else if (operand.format == Format::fp16) {
      fp16_row_to_bf16(row_of_16_bit(operand, row, slice.first_k), slice.depth, out, low + i * slice.padded_depth,
                       lanes);
    } else {
      bf16_row_to_bf16(row_of_16_bit(operand, row, slice.first_k), slice.depth, out, lanes);
    }
  }
  zero_padding(slice, present, high);
  if (operand.format == Format::fp16) {
    zero_padding(slice, present, low);
  }
  return combine(lanes);
}

void to_float32(const Tensor& operand, const Slice& slice, float* out) {
  const std::int64_t present = present_rows(operand, slice);
  for (std::int64_t i = 0; i < present; ++i) {
    const std::int64_t row = slice.of[slice.first_row + i];
    float* out_row = out + i * slice.padded_depth;
    if (row < 0) {
      std::fill_n(out_row, slice.padded_depth, 0.0F);
    } else {
      row_to_float32(operand, slice, row, out_row);
    }
  }
  zero_padding(slice, present, out);
}

void prefetch(const Tensor& operand, const Slice& slice) noexcept {
  const std::int64_t present = present_rows(operand, slice);
  const std::int64_t columns = operand.shape[1] / scale_block;
  for (std::int64_t i = 0; i < present; ++i) {
    const std::int64_t row = std::max<std::int64_t>(slice.of[slice.first_row + i], 0);
    const auto* bytes = static_cast<const std::byte*>(operand.data) +
                        (row * operand.strides[0] + slice.first_k) * bits(operand.format) / 8;
    prefetch_bytes(bytes, slice.depth * bits(operand.format) / 8);
    if (operand.format == Format::nvfp4 && operand.scales.layout == ScaleLayout::row_major) {
      prefetch_bytes(operand.scales.codes() + row * columns + slice.first_k / scale_block, slice.depth / scale_block);
    }
  }
}

bool may_be_inexact_in_bf16(Format a, Format b) noexcept {
  if (a == Format::bf16 || b == Format::bf16) {
    return true;
  }
  return a == Format::fp16 && b == Format::fp16;
}

bool exact_in_bf16(Format a, const ExponentRange& a_range, Format b, const ExponentRange& b_range) noexcept {
  if (a_range.smallest_exponent == 0 || b_range.smallest_exponent == 0) {
    return false;
  }
  if (infinity_meets_a_low_plane(a, b_range) || infinity_meets_a_low_plane(b, a_range)) {
    return false;
  }
  return smallest_place(a, a_range) + smallest_place(b, b_range) >= smallest_normal_exponent;
}

}  // namespace thresher::cpu
