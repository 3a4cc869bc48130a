#include "formats/decode.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "formats/numbers.hpp"
#include "formats/scales.hpp"

namespace thresher::formats {
namespace {

template <typename Stored, typename Real, typename Widen>
void decode_plain(const Tensor& matrix, std::int64_t row, std::span<Real> out, Widen widen) noexcept {
  const auto* source =
      static_cast<const std::byte*>(matrix.data) + row * matrix.strides[0] * static_cast<std::int64_t>(sizeof(Stored));
  for (std::size_t column = 0; column < out.size(); ++column) {
    Stored stored;
    std::memcpy(&stored, source + column * sizeof(Stored), sizeof(Stored));
    out[column] = static_cast<Real>(widen(stored));
  }
}

template <typename Real>
void decode_nvfp4(const Tensor& matrix, std::int64_t row, std::span<Real> out) noexcept {
  const auto* pairs = static_cast<const std::uint8_t*>(matrix.data) + row * matrix.strides[0] / 2;
  const std::int64_t scale_columns = matrix.shape[1] / scale_block;
  Real* next = out.data();
  for (std::int64_t block = 0; block < scale_columns; ++block) {
    const float scale =
        e4m3_values[matrix.scales.codes()[scale_offset(row, block, scale_columns, matrix.scales.layout)]];
    for (std::int64_t pair = 0; pair < scale_block / 2; ++pair) {
      const std::uint8_t codes = *pairs++;
      *next++ = static_cast<Real>(e2m1_values[codes & 0xFU] * scale);
      *next++ = static_cast<Real>(e2m1_values[codes >> 4] * scale);
    }
  }
}

template <typename Real>
void decode_fp8(const Tensor& matrix, std::int64_t row, std::span<Real> out) noexcept {
  const auto* codes = static_cast<const std::uint8_t*>(matrix.data) + row * matrix.strides[0];
  const auto columns = static_cast<std::int64_t>(out.size());
  for (std::int64_t first = 0; first < columns; first += matrix.scales.block.columns) {
    const auto scale = static_cast<Real>(fp8_scale(matrix, row, first));
    for (std::int64_t column = first; column < std::min(first + matrix.scales.block.columns, columns); ++column) {
      out[static_cast<std::size_t>(column)] = static_cast<Real>(e4m3_values[codes[column]]) * scale;
    }
  }
}

template <typename Real>
void decode(const Tensor& matrix, std::int64_t row, std::span<Real> out) noexcept {
  const auto same = [](auto stored) { return stored; };
  switch (matrix.format) {
    case Format::fp32: return decode_plain<float>(matrix, row, out, same);
    case Format::fp16: return decode_plain<std::uint16_t>(matrix, row, out, fp16_to_float);
    case Format::bf16: return decode_plain<std::uint16_t>(matrix, row, out, bf16_to_float);
    case Format::fp8_e4m3:
    case Format::fp8_tensor:
      return decode_plain<std::uint8_t>(matrix, row, out, [](std::uint8_t code) { return e4m3_values[code]; });
    case Format::nvfp4: return decode_nvfp4(matrix, row, out);
    case Format::fp8_row:
    case Format::fp8_block: return decode_fp8(matrix, row, out);
    case Format::int32: return decode_plain<std::int32_t>(matrix, row, out, same);
    case Format::uint8: return decode_plain<std::uint8_t>(matrix, row, out, same);
  }
}

}  // namespace

void decode_row(const Tensor& matrix, std::int64_t row, std::span<float> out) noexcept { decode(matrix, row, out); }
void decode_row(const Tensor& matrix, std::int64_t row, std::span<double> out) noexcept { decode(matrix, row, out); }

}  // namespace thresher::formats
