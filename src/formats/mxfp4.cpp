// MXFP4 weights as gpt-oss keeps them.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/integers.hpp"
#include "core/printable.hpp"
#include "formats/numbers.hpp"
#include "formats/stacks.hpp"
#include "formats/weight_parts.hpp"
#include "thresher/error.hpp"

namespace thresher::formats {
namespace {

constexpr std::int64_t block_values = 32;
constexpr std::int64_t block_bytes = block_values / 2;
/// 6 · 2^(252−127) is a number of bf16, 6 · 2^(253−127) none.
constexpr unsigned most_exponent = 252;

LocatedTensor part(const Checkpoint& checkpoint, const std::string& name, std::size_t dimensions, const char* shape) {
  if (!checkpoint.has(name)) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{} has no tensor {}; it has {}", checkpoint.title(),
                                                         quoted_name(name), checkpoint.listing(name)));
  }
  const LocatedTensor found = checkpoint.find(name);
  if (found.tensor->dtype != Dtype::u8 || found.tensor->shape.size() != dimensions) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}, but must be U8 {}", described_with_type(found), shape));
  }
  return found;
}

/// 2^(code − 127).
float power_of_two(unsigned code) {
  return code == 0 ? 0x1p-127F : std::bit_cast<float>(static_cast<std::uint32_t>(code) << 23);
}

}  // namespace

Stack load_mxfp4_blocks(const Checkpoint& checkpoint, std::string_view name) {
  const LocatedTensor blocks =
      part(checkpoint, fmt::format("{}_blocks", name), 4, "[experts, rows, K/32, 16], two e2m1 a byte");
  const LocatedTensor scales = part(checkpoint, fmt::format("{}_scales", name), 3, "[experts, rows, K/32]");
  const std::vector<std::int64_t>& shape = blocks.tensor->shape;
  if (shape[3] != block_bytes) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}, but must have {} bytes in its last dimension, {} values",
                                                         described_with_type(blocks), block_bytes, block_values));
  }
  if (!std::equal(scales.tensor->shape.begin(), scales.tensor->shape.end(), shape.begin())) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}, but must be U8 [{}, {}, {}] beside {}", described_with_type(scales), shape[0],
                            shape[1], shape[2], described(blocks)));
  }
  const std::vector<std::byte> codes = blocks.read();
  const std::vector<std::byte> exponents = scales.read();
  const auto beyond = std::find_if(exponents.begin(), exponents.end(),
                                   [](std::byte code) { return std::to_integer<unsigned>(code) > most_exponent; });
  if (beyond != exponents.end()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} has the exponent {}, expected 0 to {}: its weights are widened to bf16",
                            described(scales), std::to_integer<unsigned>(*beyond), most_exponent));
  }
  Stack stack;
  stack.format_ = Format::bf16;
  stack.source_ = described(blocks);
  stack.shape_ = {shape[0], shape[1], size_product(shape[2], block_values)};
  std::vector<std::uint16_t> values(2 * codes.size());
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const auto two = std::to_integer<std::uint8_t>(codes[i]);
    const float scale = power_of_two(std::to_integer<unsigned>(exponents[i / static_cast<std::size_t>(block_bytes)]));
    values[2 * i] = float_to_bf16(e2m1_to_float(two & 0xF) * scale);
    values[2 * i + 1] = float_to_bf16(e2m1_to_float(two >> 4) * scale);
  }
  stack.data_.resize(values.size() * sizeof(std::uint16_t));
  std::memcpy(stack.data_.data(), values.data(), stack.data_.size());
  return stack;
}

}  // namespace thresher::formats
