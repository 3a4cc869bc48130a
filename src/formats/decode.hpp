#pragma once
/// Whole rows of any CPU matrix as floating-point numbers.
#include <cstdint>
#include <span>

#include "thresher/tensor.hpp"

namespace thresher::formats {

/// Row `row` of a matrix that check_matrix accepts, element for element what `element` gives: for NVFP4 value × scale,
/// and for fp8_row and fp8_block too, WITHOUT the global scale. Exact, except that in float an int32 beyond 2^24 and
/// the products with float32 scales round once. `out` has one place a column.
void decode_row(const Tensor& matrix, std::int64_t row, std::span<float> out) noexcept;
void decode_row(const Tensor& matrix, std::int64_t row, std::span<double> out) noexcept;

}  // namespace thresher::formats
