#include "formats/mxfp4.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <utility>

#include "formats/finite_rows.hpp"
#include "formats/numbers.hpp"
#include "formats/scales.hpp"
#include "thresher/error.hpp"

namespace thresher::formats {
namespace {

constexpr int exponent_bias = 127;
/// The exponent of the maximum of e2m1, 6 = 1.5 · 2^2.
constexpr int greatest_value_exponent = 2;
/// bf16 can represent 6 · 2^(252−127), but not 6 · 2^(253−127).
constexpr unsigned max_exponent = 252;
constexpr unsigned nan_exponent = 255;
/// e4m3 can represent powers of two from 2^-9 to 2^8.
constexpr unsigned e4m3_span = 17;
constexpr int max_e4m3_power = 8;
/// Kernels that quantize NVFP4 weights to e4m3 move a row's largest scale to 2^6 and keep scales from 2^-5 on.
constexpr unsigned fold_span = 11;

/// 2^(code − 127).
float power_of_two(unsigned code) {
  return code == 0 ? 0x1p-127F : std::bit_cast<float>(static_cast<std::uint32_t>(code) << 23);
}

/// The exponents of one matrix's blocks that are not all zeros.
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
  /// Whether a global scale, a normal number, and e4m3 scales together can represent the exponents.
  [[nodiscard]] bool fit_nvfp4() const { return span() <= e4m3_span && (is_empty() || most > max_e4m3_power); }
  /// The common factor of all scales of the matrix.
  [[nodiscard]] float global_scale() const { return is_empty() ? 1.0F : power_of_two(most - max_e4m3_power); }
};

/// 2^(code − most + 8); 0 for a code outside the exponents.
std::uint8_t e4m3_scale(unsigned code, const Exponents& of) {
  if (of.is_empty() || code < of.least || code > of.most) {
    return 0;
  }
  return float_to_e4m3(std::ldexp(1.0F, max_e4m3_power - static_cast<int>(of.most - code)));
}

std::vector<Exponents> exponents_of(std::span<const std::byte> codes, std::span<const std::byte> exponents,
                                    std::size_t matrices) {
  std::vector<Exponents> found(matrices);
  for (std::size_t block = 0; block < exponents.size(); ++block) {
    found[block / (exponents.size() / matrices)].add(
        std::to_integer<unsigned>(exponents[block]),
        codes.subspan(block * static_cast<std::size_t>(mxfp4_block_bytes), mxfp4_block_bytes));
  }
  return found;
}

/// Each exponent becomes two scales.
std::vector<std::byte> e4m3_scales(std::span<const std::byte> exponents, std::span<const Exponents> of_matrices) {
  std::vector<std::byte> scales;
  scales.reserve(2 * exponents.size());
  for (std::size_t block = 0; block < exponents.size(); ++block) {
    const Exponents& of = of_matrices[block / (exponents.size() / of_matrices.size())];
    scales.insert(scales.end(), 2, std::byte{e4m3_scale(std::to_integer<unsigned>(exponents[block]), of)});
  }
  return scales;
}

/// In bf16, which represents them exactly: each value times scale(its byte).
template <class Scale>
std::vector<std::byte> widened(std::span<const std::byte> codes, const Scale& scale) {
  std::vector<std::byte> wide(codes.size() * 2 * sizeof(std::uint16_t));
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const auto two = std::to_integer<std::uint8_t>(codes[i]);
    const float factor = scale(i);
    const std::uint16_t values[]{float_to_bf16(e2m1_to_float(two & 0xF) * factor),
                                 float_to_bf16(e2m1_to_float(two >> 4) * factor)};
    std::memcpy(wide.data() + i * sizeof values, values, sizeof values);
  }
  return wide;
}

void check_exponents(std::span<const std::byte> exponents, std::string_view title) {
  const auto beyond = std::find_if(exponents.begin(), exponents.end(),
                                   [](std::byte code) { return std::to_integer<unsigned>(code) > max_exponent; });
  if (beyond != exponents.end()) {
    const auto code = std::to_integer<unsigned>(*beyond);
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} has the exponent {}{}, expected 0 to {}: bf16 has to hold what it scales", title, code,
                            code == nan_exponent ? ", which is NaN" : "", max_exponent));
  }
}

/// The largest power of two that is not above `amax`, divided by that of e2m1.
unsigned shared_exponent(float amax) {
  if (amax == 0.0F) {
    return 0;
  }
  const int exponent = std::ilogb(amax) - greatest_value_exponent;
  return static_cast<unsigned>(std::max(exponent + exponent_bias, 0));
}

}  // namespace

Mxfp4Matrix quantize_mxfp4(const Tensor& matrix, std::string_view role) {
  constexpr QuantizationTarget target{"mxfp4", mxfp4_block};
  check_quantizable(matrix, role, target);
  Mxfp4Matrix out{matrix.shape[0], matrix.shape[1], {}, {}};
  if (matrix.elements() == 0) {
    return out;  // without a loop over empty rows, of which there may be 2^62
  }
  out.values.reserve(static_cast<std::size_t>(matrix.elements() / 2));
  out.exponents.reserve(static_cast<std::size_t>(matrix.elements() / mxfp4_block));
  std::vector<float> row(static_cast<std::size_t>(out.k));
  for (std::int64_t r = 0; r < out.rows; ++r) {
    decode_finite_row(matrix, r, row, role, target);
    for (std::size_t first = 0; first < row.size(); first += mxfp4_block) {
      const std::span<const float> block = std::span(row).subspan(first, mxfp4_block);
      const unsigned exponent = shared_exponent(largest_magnitude(block));
      // Not a quotient: 2^-127 is not a normal number.
      const auto code = [up = exponent_bias - static_cast<int>(exponent)](float value) {
        return float_to_e2m1(std::ldexp(value, up));
      };
      for (std::size_t i = 0; i < block.size(); i += 2) {
        out.values.push_back(static_cast<std::uint8_t>(code(block[i]) | code(block[i + 1]) << 4));
      }
      out.exponents.push_back(static_cast<std::uint8_t>(exponent));
    }
  }
  return out;
}

HeldMxfp4 hold_mxfp4(std::vector<std::byte> codes, std::span<const std::byte> exponents, std::size_t matrices,
                     std::string_view exponents_title) {
  check_exponents(exponents, exponents_title);
  // A file may claim any number of matrices without rows: one global scale per matrix has to fit into memory.
  constexpr std::size_t max_without_rows = 1 << 20;
  const bool are_too_many = exponents.empty() && matrices > max_without_rows;
  const std::vector<Exponents> found = exponents_of(codes, exponents, are_too_many ? 0 : matrices);
  HeldMxfp4 held;
  for (const Exponents& one : found) {
    held.span = std::max(held.span, one.span());
  }
  if (!found.empty() && std::all_of(found.begin(), found.end(), [](const auto& one) { return one.fit_nvfp4(); })) {
    held.scales = e4m3_scales(exponents, found);
    std::transform(found.begin(), found.end(), std::back_inserter(held.global_scales),
                   [](const Exponents& one) { return one.global_scale(); });
    held.data = std::move(codes);
    return held;
  }
  held.format = Format::bf16;
  held.data = widened(codes, [&](std::size_t byte) {
    return power_of_two(std::to_integer<unsigned>(exponents[byte / static_cast<std::size_t>(mxfp4_block_bytes)]));
  });
  return held;
}

std::vector<std::byte> widened_mxfp4(std::span<const std::byte> codes, std::span<const std::byte> scales,
                                     std::span<const float> global_scales) {
  const std::size_t scale_bytes = static_cast<std::size_t>(scale_block) / 2;
  return widened(codes, [&](std::size_t byte) {
    return e4m3_to_float(std::to_integer<std::uint8_t>(scales[byte / scale_bytes])) *
           global_scales[byte / (codes.size() / global_scales.size())];
  });
}

bool folds_mxfp4_exactly(Format held, unsigned span) { return held == Format::nvfp4 && span <= fold_span; }

std::string stored_as(Format format, std::optional<unsigned> span) {
  if (!span) {
    return std::string(name(format));
  }
  if (folds_mxfp4_exactly(format, *span)) {
    return "mxfp4 as nvfp4, exact in both numerics";
  }
  return format == Format::nvfp4
             ? fmt::format("mxfp4 as nvfp4, exact in 16 bits (fast may round: exponents are {} apart, more than {})",
                           *span, fold_span)
             : fmt::format("mxfp4 as {}, exact (nvfp4 does not hold all exponents)", name(format));
}

}  // namespace thresher::formats
