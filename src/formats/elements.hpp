#pragma once
/// Reading any CPU tensor element by element, and checking that it may be read.
#include <cstdint>
#include <string_view>

#include "thresher/tensor.hpp"

namespace thresher::formats {

/// Throws Error(invalid_argument) naming `role` unless `tensor` is a CPU matrix [rows, columns] of `format`. Its
/// columns are contiguous, its rows do not overlap, and the blocks of its scales, if any, are the format's. For NVFP4,
/// K is a multiple of 16 and rows start on a byte. An empty matrix needs no data.
void check_matrix(const Tensor& tensor, std::string_view role, std::int64_t rows, std::int64_t columns, Format format);

/// The element of a matrix that check_matrix accepts, as a double: value × scale if the format has scales, WITHOUT the
/// global scale.
[[nodiscard]] double element(const Tensor& matrix, std::int64_t row, std::int64_t column) noexcept;

/// The tensor's global scale, 1 if it has none.
[[nodiscard]] double global_scale(const Tensor& tensor) noexcept;

}  // namespace thresher::formats
