#pragma once
#include <cstddef>
#include <cstdint>

#include "thresher/tensor.hpp"

namespace thresher::test {

/// So many neighbouring rows of a tensor, with their scales, which lie row by row.
inline Tensor rows_of(Tensor tensor, std::int64_t first, std::int64_t count) {
  const auto moved = [](const void* at, std::int64_t bytes) { return static_cast<const std::byte*>(at) + bytes; };
  tensor.data = const_cast<std::byte*>(moved(tensor.data, first * tensor.strides[0] * bits(tensor.format) / 8));
  if (tensor.scales.data != nullptr) {
    const auto bytes_of = [&](std::int64_t rows) {
      return static_cast<std::int64_t>(
          scale_bytes(tensor.format, OperandRole::tokens, rows, tensor.shape[1], ScaleLayout::row_major));
    };
    tensor.scales.data = moved(tensor.scales.data, first * (bytes_of(2) - bytes_of(1)));
  }
  tensor.shape[0] = count;
  return tensor;
}

}  // namespace thresher::test
