#pragma once
// Operands of NVFP4 products whose sums are exact in float32.
#include <array>
#include <cstdint>
#include <vector>

#include "machine/emulator/engine/random.hpp"

namespace thresher::emulator::test {

/// Rows of e2m1 codes, and scales of a half, one, one and a half or two in blocks of 128 rows by 4, those of the first
/// 128 rows first and along k.
class Nvfp4Operand {
 public:
  Nvfp4Operand(std::uint32_t rows, std::uint32_t k, std::uint64_t seed)
      : codes(std::size_t{rows} * k / 2), scales(std::size_t{(rows + 127) / 128 * 128} * k / 16), k_(k) {
    Random random(seed);
    for (std::uint8_t& code : codes) {
      code = static_cast<std::uint8_t>(random.below(256));
    }
    for (std::uint8_t& scale : scales) {
      scale = small_scales[random.below(4)];
    }
  }
  [[nodiscard]] float at(std::uint32_t row, std::uint32_t column) const {
    constexpr std::array<float, 16> e2m1 = {0, 0.5F, 1, 1.5F, 2, 3, 4, 6, 0, -0.5F, -1, -1.5F, -2, -3, -4, -6};
    const std::uint8_t pair = codes[(std::size_t{row} * k_ + column) / 2];
    const std::size_t block = std::size_t{row} / 128 * (k_ / 64) + column / 64;
    const std::uint8_t scale = scales[block * 512 + row % 32 * 16 + row % 128 / 32 * 4 + column / 16 % 4];
    const float factor = scale == small_scales[0]   ? 0.5F
                         : scale == small_scales[1] ? 1.0F
                         : scale == small_scales[2] ? 1.5F
                                                    : 2.0F;
    return e2m1[pair >> (column % 2 * 4) & 15] * factor;
  }

  std::vector<std::uint8_t> codes;
  std::vector<std::uint8_t> scales;

 private:
  static constexpr std::array<std::uint8_t, 4> small_scales = {0x30, 0x38, 0x3C, 0x40};  // UE4M3
  std::uint32_t k_;
};

/// C = A·Bᵀ, row by row, `tiles` times.
inline std::vector<float> product(const Nvfp4Operand& a, std::uint32_t rows, const Nvfp4Operand& b,
                                  std::uint32_t columns, std::uint32_t k, std::uint32_t tiles) {
  std::vector<float> c;
  for (std::uint32_t tile = 0; tile < tiles; ++tile) {
    for (std::uint32_t i = 0; i < rows; ++i) {
      for (std::uint32_t j = 0; j < columns; ++j) {
        float sum = 0;
        for (std::uint32_t x = 0; x < k; ++x) {
          sum += a.at(i, x) * b.at(j, x);
        }
        c.push_back(sum);
      }
    }
  }
  return c;
}

}  // namespace thresher::emulator::test
