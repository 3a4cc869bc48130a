#include "formats/fp8.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "formats/finite_rows.hpp"
#include "formats/numbers.hpp"
#include "formats/scales.hpp"
#include "thresher/error.hpp"

namespace thresher::formats {
namespace {

/// How scales are shared within one row: the number of columns per scale, and the index of a scale.
struct Sharing {
  Tensor matrix;

  [[nodiscard]] bool is_one() const { return !format_traits(matrix.format).has_scales(); }
  [[nodiscard]] std::int64_t columns() const { return is_one() ? matrix.shape[1] : matrix.scales.block.columns; }
  [[nodiscard]] std::size_t scale(std::int64_t row, std::int64_t column) const {
    return is_one() ? 0 : static_cast<std::size_t>(scale_index(matrix, row, column));
  }
  /// Calls look(scale, the values of `row` under it).
  void for_each(std::int64_t row, std::span<float> values, const auto& look) const {
    for (std::int64_t column = 0; column < std::ssize(values); column += columns()) {
      const auto count = std::min<std::int64_t>(columns(), std::ssize(values) - column);
      look(scale(row, column), values.subspan(static_cast<std::size_t>(column), static_cast<std::size_t>(count)));
    }
  }
};

}  // namespace

Tensor Fp8Matrix::view() noexcept {
  return Tensor::fp8(values.data(), format, role, scales.data(), rows, k, scale_layout);
}

Fp8Matrix quantize_fp8(const Tensor& matrix, std::string_view name, Format format, OperandRole role,
                       ScaleLayout layout) {
  check_quantizable(matrix, name, format);
  if (!may_lie(layout, format, role)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} is to have {} scales, which those of {} in {} cannot be", name, thresher::name(layout),
                            role == OperandRole::tokens ? "tokens" : "weights", thresher::name(format)));
  }
  Fp8Matrix out{format, role, matrix.shape[0], matrix.shape[1], {}, {}, layout};
  out.values.resize(static_cast<std::size_t>(matrix.elements()));
  const std::size_t scales = scale_bytes(format, role, out.rows, out.k, layout) / sizeof(float);
  out.scales.resize(format_traits(format).has_scales() ? scales : 1);
  std::vector<float> row(static_cast<std::size_t>(out.k));
  const Sharing sharing{out.view()};
  for (std::int64_t r = 0; r < out.rows && out.k > 0; ++r) {
    decode_finite_row(matrix, r, row, name, format);
    sharing.for_each(r, row, [&](std::size_t scale, std::span<float> values) {
      out.scales[scale] = std::max(out.scales[scale], largest_magnitude(values) / e4m3_max);
    });
  }
  for (std::int64_t r = 0; r < out.rows && out.k > 0; ++r) {
    decode_finite_row(matrix, r, row, name, format);
    std::uint8_t* code = out.values.data() + r * out.k;
    sharing.for_each(r, row, [&](std::size_t scale, std::span<float> values) {
      out.scales[scale] = out.scales[scale] == 0 ? 1 : out.scales[scale];
      for (const float value : values) {
        *code++ = float_to_e4m3(value / out.scales[scale]);
      }
    });
  }
  if (!format_traits(format).has_scales() && out.scales.front() == 0) {
    out.scales.front() = 1;  // of no rows
  }
  return out;
}

}  // namespace thresher::formats
