#pragma once
/// What titles of programs say of the numbers that they multiply.
#include <string_view>

#include "strategies/grouped_gemm/device/plain_params.hpp"

namespace thresher::strategies::grouped_gemm {

/// Behind a strategy's name; nothing of 16 bits.
constexpr std::string_view number_words(Number operand, dual_gemm::Numerics numerics) {
  return promotes(operand, numerics) ? " FP8 promoted" : operand == Number::e4m3 ? " FP8" : "";
}

}  // namespace thresher::strategies::grouped_gemm
