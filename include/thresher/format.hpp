#pragma once
/// Element formats and their properties. A new format is an enumerator, a row of traits and its kernels.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

namespace thresher {

/// Element formats, including those of scales. `nvfp4` is e2m1, two values per byte, low nibble first, with one e4m3
/// scale per 16 along K. The three FP8 formats are e4m3 values multiplied by float32 scales; they differ in the block
/// that one scale covers.
enum class Format : std::uint8_t {
  fp32,
  fp16,
  bf16,
  fp8_e4m3,  ///< values without scales
  nvfp4,
  int32,
  uint8,
  fp8_tensor,  ///< one scale for the whole matrix: Tensor::global_scale
  fp8_row,     ///< one scale per row
  fp8_block,   ///< tokens: one scale per 128 along K of one row; weights: per 128 x 128
};

inline constexpr std::array all_formats{Format::fp32,    Format::fp16,     Format::bf16,  Format::fp8_e4m3,
                                        Format::nvfp4,   Format::int32,    Format::uint8, Format::fp8_tensor,
                                        Format::fp8_row, Format::fp8_block};

/// The role of a tensor in a product. A scale of fp8_block covers a different block of weights than of tokens.
enum class OperandRole : std::uint8_t { tokens, weights };

/// The whole row along K, in FormatTraits::values_per_scale.
inline constexpr int whole_row = 1 << 30;

struct FormatTraits {
  std::string_view name;                ///< as in suites, on the command line and in the ledger
  int bits = 0;                         ///< of one value, without its scales
  Format scale_format = Format::uint8;  ///< of the scales, if there are any
  int values_per_scale = 0;             ///< values along K that share one scale; 0 without scales
  int weight_rows_per_scale = 1;        ///< rows of weights that share one scale; each row of tokens has its own
  int k_multiple = 1;                   ///< K of an operand is a multiple of it
  int n_multiple = 1;                   ///< N of an output is a multiple of it
  Format product_format =
      Format::uint8;        ///< the multiplied format: the values', or one that holds value × scale exactly
  bool is_operand = false;  ///< of a product: A, B1, B2, Q, K, V
  bool is_output = false;   ///< of a product: C, O

  [[nodiscard]] constexpr bool has_scales() const noexcept { return values_per_scale > 0; }
  /// A quantized output: its values are divided by scales that are given (static) or found by the call (dynamic).
  [[nodiscard]] constexpr bool is_quantized_output() const noexcept { return is_output && bits < 16; }
  [[nodiscard]] constexpr bool is_unscaled_output() const noexcept { return is_output && !is_quantized_output(); }
  /// Bits of memory for one value with its share of a scale: 4.5 for nvfp4.
  [[nodiscard]] constexpr double stored_bits(OperandRole role = OperandRole::tokens) const noexcept;
};

namespace detail {
inline constexpr std::array<FormatTraits, all_formats.size()> format_table{{
    {.name = "fp32", .bits = 32, .product_format = Format::fp32, .is_output = true},
    {.name = "fp16",
     .bits = 16,
     .k_multiple = 8,
     .product_format = Format::fp16,
     .is_operand = true,
     .is_output = true},
    {.name = "bf16",
     .bits = 16,
     .k_multiple = 8,
     .product_format = Format::bf16,
     .is_operand = true,
     .is_output = true},
    {.name = "fp8_e4m3", .bits = 8, .product_format = Format::fp8_e4m3},
    {.name = "nvfp4",
     .bits = 4,
     .scale_format = Format::fp8_e4m3,
     .values_per_scale = 16,
     .k_multiple = 16,
     .n_multiple = 16,
     .product_format = Format::fp16,  // 6 bits of significand, exponents from 2^-10 to 2^11: bf16 holds them as well
     .is_operand = true,
     .is_output = true},
    {.name = "int32", .bits = 32, .product_format = Format::int32},
    {.name = "uint8", .bits = 8, .product_format = Format::uint8},
    {.name = "fp8_tensor",
     .bits = 8,
     .k_multiple = 16,
     .product_format = Format::fp8_e4m3,
     .is_operand = true,
     .is_output = true},
    {.name = "fp8_row",
     .bits = 8,
     .scale_format = Format::fp32,
     .values_per_scale = whole_row,
     .k_multiple = 16,
     .product_format = Format::fp8_e4m3,
     .is_operand = true,
     .is_output = true},
    {.name = "fp8_block",
     .bits = 8,
     .scale_format = Format::fp32,
     .values_per_scale = 128,
     .weight_rows_per_scale = 128,
     .k_multiple = 16,
     .n_multiple = 128,
     .product_format = Format::fp8_e4m3,
     .is_operand = true,
     .is_output = true},
}};

template <auto is>
consteval auto formats_that() {
  constexpr auto fits = [](const FormatTraits& traits) { return std::invoke(is, traits); };
  std::array<Format, std::count_if(format_table.begin(), format_table.end(), fits)> found{};
  std::copy_if(all_formats.begin(), all_formats.end(), found.begin(),
               [&](Format format) { return fits(format_table[static_cast<std::size_t>(format)]); });
  return found;
}
}  // namespace detail

inline constexpr auto operand_formats = detail::formats_that<&FormatTraits::is_operand>();
inline constexpr auto output_formats = detail::formats_that<&FormatTraits::is_output>();
/// The output formats without scales: fp32, fp16 and bf16.
inline constexpr auto unscaled_output_formats = detail::formats_that<&FormatTraits::is_unscaled_output>();

[[nodiscard]] constexpr const FormatTraits& format_traits(Format format) noexcept {
  return detail::format_table[static_cast<std::size_t>(format)];
}

constexpr double FormatTraits::stored_bits(OperandRole role) const noexcept {
  const double rows = role == OperandRole::weights ? weight_rows_per_scale : 1;
  return has_scales() ? bits + format_traits(scale_format).bits / (rows * values_per_scale) : bits;
}

/// "fp16", "bf16", …
[[nodiscard]] constexpr std::string_view name(Format format) noexcept { return format_traits(format).name; }
/// The format of that name; empty when there is none.
[[nodiscard]] std::optional<Format> parse_format(std::string_view text) noexcept;
/// Bits per element: 4 for nvfp4 (its scales not counted).
[[nodiscard]] constexpr int bits(Format format) noexcept { return format_traits(format).bits; }

/// The memory layout of the scales of a tensor [rows, K], with C scales for the K values of a row.
enum class ScaleLayout : std::uint8_t {
  row_major,  ///< [rows, C]
  /// The layout of Blackwell and cuBLAS: rows padded to 128 and C to 4 with zeros. Scale (r, c) is at byte
  /// ((r/128)*ceil(C/4) + c/4)*512 + (r%32)*16 + ((r%128)/32)*4 + c%4.
  blocked,
  /// [C, rows rounded up to 4]: the layout that kernels for Hopper need for scales of fp8_block tokens. The padding is
  /// not read.
  column_major,
};

inline constexpr std::array all_scale_layouts{ScaleLayout::row_major, ScaleLayout::blocked, ScaleLayout::column_major};

/// "row-major", "blocked" or "column-major".
[[nodiscard]] std::string_view name(ScaleLayout layout) noexcept;
[[nodiscard]] std::optional<ScaleLayout> parse_scale_layout(std::string_view text) noexcept;

}  // namespace thresher
