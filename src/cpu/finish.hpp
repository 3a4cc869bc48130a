#pragma once
/// The end of a dual GEMM: global scales, activation, rounding, store.
#include <cstdint>

#include "thresher/dual_gemm.hpp"
#include "thresher/tensor.hpp"

namespace thresher::cpu {

/// What is applied to the finished products. The scales are products of two global scales, exact in float64.
struct Finish {
  Activation activation;
  double gate_scale;
  double up_scale;
};

/// One row: out[i] = activation(gate_scale · gate[i], up_scale · up[i]), rounded once to `out_format` (fp16, bf16,
/// fp32).
void finish_row(const Finish& finish, const float* gate, const float* up, std::int64_t count, Format out_format,
                void* out);

/// Finishes [columns, rows] products into rows `first_row`… and columns `first_column`… of `c`. `gate` and `up` have
/// `stride` elements from column to column and room for `rows` and `columns` rounded up to 16 and 4; `gate` is
/// overwritten, and `scratch` has transposed_scratch_floats(columns) elements.
void finish_transposed(const Finish& finish, float* gate, const float* up, std::int64_t stride, std::int64_t rows,
                       std::int64_t columns, const Tensor& c, std::int64_t first_row, std::int64_t first_column,
                       float* scratch);
[[nodiscard]] std::int64_t transposed_scratch_floats(std::int64_t columns) noexcept;

}  // namespace thresher::cpu
