#include <array>
#include <cstddef>

#include "cpu/rows.hpp"
#include "formats/numbers.hpp"

namespace thresher::cpu {
namespace {

/// Every e4m3 value as bf16, exactly.
constexpr std::array<std::uint16_t, 256> bf16_of_e4m3 = [] {
  std::array<std::uint16_t, 256> patterns{};
  for (std::size_t code = 0; code < patterns.size(); ++code) {
    patterns[code] = formats::float_to_bf16(formats::e4m3_values[code]);
  }
  return patterns;
}();

}  // namespace

void e4m3_row_to_bf16(const std::uint8_t* codes, std::int64_t count, std::uint16_t* out) {
  for (std::int64_t i = 0; i < count; ++i) {
    out[i] = bf16_of_e4m3[codes[i]];
  }
}

void e4m3_row_to_float32(const std::uint8_t* codes, std::int64_t count, float scale, float* out) {
  for (std::int64_t i = 0; i < count; ++i) {
    out[i] = formats::e4m3_values[codes[i]] * scale;
  }
}

}  // namespace thresher::cpu
