#pragma once
/// Whole rows of any CPU matrix as floating-point numbers.
#include <cstdint>
#include <span>

#include "thresher/tensor.hpp"

namespace thresher::formats {

/// Row `row` of a matrix that check_matrix accepts, with the same values as `element`: value × scale for NVFP4, fp8_row
/// and fp8_block, WITHOUT the global scale. Exact, except that in float an int32 beyond 2^24 and products with float32
/// scales round once. `out` has one element per column.
void decode_row(const Tensor& matrix, std::int64_t row, std::span<float> out) noexcept;
void decode_row(const Tensor& matrix, std::int64_t row, std::span<double> out) noexcept;

}  // namespace thresher::formats
