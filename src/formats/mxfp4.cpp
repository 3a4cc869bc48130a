// MXFP4 weights as gpt-oss keeps them.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <span>
#include <utility>

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
/// Powers of two from 2^-9 to 2^8 are numbers of e4m3.
constexpr unsigned e4m3_span = 17;
constexpr int most_e4m3_power = 8;
/// Kernels that fold NVFP4 into e4m3 move a row's largest scale to 2^6 and keep scales from 2^-5 on.
constexpr unsigned fold_span = 11;

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

/// The exponents of those of one expert's blocks that are not all zeros.
struct Exponents {
  unsigned least = 255;
  unsigned most = 0;

  void add(unsigned code, std::span<const std::byte> pairs) {
    constexpr unsigned magnitudes = 0x77;
    if (std::any_of(pairs.begin(), pairs.end(),
                    [](std::byte pair) { return (std::to_integer<unsigned>(pair) & magnitudes) != 0; })) {
      least = std::min(least, code);
      most = std::max(most, code);
    }
  }
  [[nodiscard]] bool is_empty() const { return least > most; }
  [[nodiscard]] unsigned span() const { return is_empty() ? 0 : most - least; }
  /// That a global scale, a normal number, and scales in e4m3 together have.
  [[nodiscard]] bool fit_nvfp4() const { return span() <= e4m3_span && (is_empty() || most > most_e4m3_power); }
  [[nodiscard]] bool fold_exactly() const { return span() <= fold_span; }
  /// What all scales of the expert are multiplied by.
  [[nodiscard]] float global_scale() const { return is_empty() ? 1.0F : power_of_two(most - most_e4m3_power); }
};

/// 2^(code − most + 8); of what is not among the exponents 0.
std::uint8_t e4m3_scale(unsigned code, const Exponents& of) {
  if (of.is_empty() || code < of.least || code > of.most) {
    return 0;
  }
  return float_to_e4m3(std::ldexp(1.0F, most_e4m3_power - static_cast<int>(of.most - code)));
}

std::vector<Exponents> exponents_of(std::span<const std::byte> codes, std::span<const std::byte> exponents,
                                    std::size_t experts) {
  std::vector<Exponents> found(experts);
  for (std::size_t block = 0; block < exponents.size(); ++block) {
    found[block / (exponents.size() / experts)].add(
        std::to_integer<unsigned>(exponents[block]),
        codes.subspan(block * static_cast<std::size_t>(block_bytes), block_bytes));
  }
  return found;
}

/// Each exponent becomes two scales.
std::vector<std::byte> e4m3_scales(std::span<const std::byte> exponents, std::span<const Exponents> of_experts) {
  std::vector<std::byte> scales;
  scales.reserve(2 * exponents.size());
  for (std::size_t block = 0; block < exponents.size(); ++block) {
    const Exponents& of = of_experts[block / (exponents.size() / of_experts.size())];
    scales.insert(scales.end(), 2, std::byte{e4m3_scale(std::to_integer<unsigned>(exponents[block]), of)});
  }
  return scales;
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
  std::vector<std::byte> codes = blocks.read();
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
  // Of nothing there may be any number of experts.
  const std::size_t experts = exponents.empty() ? 0 : static_cast<std::size_t>(shape[0]);
  const std::vector<Exponents> of_experts = exponents_of(codes, exponents, experts);
  const auto all = [&](bool (Exponents::*is)() const) {
    return std::all_of(of_experts.begin(), of_experts.end(), [is](const Exponents& one) { return (one.*is)(); });
  };
  if (experts > 0 && all(&Exponents::fit_nvfp4)) {
    stack.format_ = Format::nvfp4;
    stack.folds_exactly_ = all(&Exponents::fold_exactly);
    stack.scales_ = e4m3_scales(exponents, of_experts);
    std::transform(of_experts.begin(), of_experts.end(), std::back_inserter(stack.global_scales_),
                   [](const Exponents& one) { return one.global_scale(); });
    stack.data_ = std::move(codes);
    return stack;
  }
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
