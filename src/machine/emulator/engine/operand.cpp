#include "machine/emulator/engine/operand.hpp"

namespace thresher::emulator {

Operand::Operand(std::uint64_t descriptor, bool mn_major, std::uint32_t extent)
    : start_(static_cast<std::uint32_t>(descriptor & 0x3FFF) << 4),
      leading_(static_cast<std::uint32_t>(descriptor >> 16 & 0x3FFF) << 4),
      stride_(static_cast<std::uint32_t>(descriptor >> 32 & 0x3FFF) << 4),
      swizzle_bits_((4 - static_cast<std::uint32_t>(descriptor >> 62)) % 4),  // 1: 128 bytes, 2: 64, 3: 32
      mn_major_(mn_major),
      extent_(extent) {}

bool Operand::aligned() const {
  return swizzle_bits_ == 0 || start_ % (128U << swizzle_bits_) < (16U << swizzle_bits_);
}

/// The chunk's position before swizzling. The unswizzled layouts consist of dense cores, 8 rows of 16 bytes.
std::uint32_t Operand::linear(std::uint32_t chunk) const {
  const std::uint32_t span = 16U << swizzle_bits_;
  if (!mn_major_) {
    const std::uint32_t row = chunk / 2;
    const std::uint32_t half = chunk % 2;
    const std::uint32_t along_k = swizzle_bits_ == 0 ? half * leading_ : half * 16;
    return row / 8 * stride_ + row % 8 * span + along_k;
  }
  const std::uint32_t chunks_per_column = extent_ / 8;
  const std::uint32_t k = chunk / chunks_per_column;
  const std::uint32_t byte = chunk % chunks_per_column * 16;
  const std::uint32_t group = byte / span;
  const std::uint32_t across =
      swizzle_bits_ == 0 ? group * stride_ + k / 8 * leading_ : group * leading_ + k / 8 * stride_;
  return across + k % 8 * span + byte % span;
}

std::uint32_t Operand::address(std::uint32_t chunk) const {
  const std::uint32_t address = start_ + linear(chunk);
  const std::uint32_t mask = (1U << swizzle_bits_) - 1U;
  return address ^ ((address >> 7 & mask) << 4);
}

}  // namespace thresher::emulator
