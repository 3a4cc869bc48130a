#pragma once
/// Conversions of one row, vectorised for the CPU it runs on. Pointers need only the alignment of their type.
#include <array>
#include <cstddef>
#include <cstdint>

namespace thresher::cpu {

/// The range of 16-bit values in rows, lane by lane, to be combined at the end.
struct RangeLanes {
  static constexpr std::size_t lanes = 32;
  alignas(64) std::array<std::uint16_t, lanes> smallest;  ///< non-zero magnitude minus 1
  alignas(64) std::array<std::uint16_t, lanes> infinite;  ///< not 0: there was an Inf

  RangeLanes() {
    smallest.fill(0xFFFF);
    infinite.fill(0);
  }
};

/// value × scale, exactly; `count` is a multiple of 16, `scales` holds one e4m3 scale per 16 values.
void nvfp4_row_to_bf16(const std::uint8_t* packed, const std::uint8_t* scales, std::int64_t count, std::uint16_t* out);
void nvfp4_row_to_float32(const std::uint8_t* packed, const std::uint8_t* scales, std::int64_t count, float* out);

/// e4m3 values, exactly.
void e4m3_row_to_bf16(const std::uint8_t* codes, std::int64_t count, std::uint16_t* out);
/// value × scale, rounded once.
void e4m3_row_to_float32(const std::uint8_t* codes, std::int64_t count, float scale, float* out);

/// in = high + low exactly. Inf and NaN are in `high` alone. Only `infinite` of the lanes is updated.
void fp16_row_to_bf16(const std::uint16_t* in, std::int64_t count, std::uint16_t* high, std::uint16_t* low,
                      RangeLanes& lanes);
void fp16_row_to_float32(const std::uint16_t* in, std::int64_t count, float* out);

void bf16_row_to_bf16(const std::uint16_t* in, std::int64_t count, std::uint16_t* out, RangeLanes& lanes);
void bf16_row_to_float32(const std::uint16_t* in, std::int64_t count, float* out);

}  // namespace thresher::cpu
