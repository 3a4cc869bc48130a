#pragma once
/// The epilogue of one or two products: global scales, bias, activation, row weights, rounding, store.
#include <cstdint>
#include <cstring>
#include <optional>

#include "formats/numbers.hpp"
#include "thresher/dual_gemm.hpp"
#include "thresher/tensor.hpp"

namespace thresher::cpu {

/// One number for each column, in fp32, fp16 or bf16.
struct Bias {
  const void* data = nullptr;  ///< null: 0
  Format format = Format::fp32;
  std::int64_t step = 1;  ///< elements from column to column

  [[nodiscard]] float at(std::int64_t column) const noexcept {
    if (data == nullptr) {
      return 0.0F;
    }
    const auto* bytes = static_cast<const std::byte*>(data) + column * step * bits(format) / 8;
    if (format == Format::fp32) {
      float value = 0;
      std::memcpy(&value, bytes, sizeof value);
      return value;
    }
    std::uint16_t half = 0;
    std::memcpy(&half, bytes, sizeof half);
    return format == Format::fp16 ? formats::fp16_to_float(half) : formats::bf16_to_float(half);
  }
};

/// The biases of one column.
struct ColumnBias {
  float gate = 0;
  float up = 0;
  bool is_any = false;
};

/// The epilogue of the finished products. The scales are products of two global scales, exact in float64. Only
/// finish_transposed reads the members after them.
struct Finish {
  std::optional<Activation> activation;  ///< none: the gate itself
  double gate_scale;
  double up_scale;
  Bias gate_bias{};
  Bias up_bias{};
  const float* row_weights = nullptr;    ///< one per row; null: 1
  const std::int64_t* tokens = nullptr;  ///< one per row; a row with a negative token is not stored
};

/// One row: out[i] = activation(gate_scale · gate[i], up_scale · up[i]), rounded once to `out_format` (fp16, bf16,
/// fp32).
void finish_row(const Finish& finish, const float* gate, const float* up, std::int64_t count, Format out_format,
                void* out);

/// Finishes [columns, rows] products into rows `first_row`… and columns `first_column`… of `c`. `gate` and `up` have
/// `stride` elements from column to column, and memory for `rows` and `columns` rounded up to 16 and 4. `gate` is
/// overwritten, and `scratch` has transposed_scratch_floats(columns) elements.
void finish_transposed(const Finish& finish, float* gate, const float* up, std::int64_t stride, std::int64_t rows,
                       std::int64_t columns, const Tensor& c, std::int64_t first_row, std::int64_t first_column,
                       float* scratch);
[[nodiscard]] std::int64_t transposed_scratch_floats(std::int64_t columns) noexcept;

}  // namespace thresher::cpu
