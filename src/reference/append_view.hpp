#pragma once
/// Positions of the rows of an append, and its integers. Pure arithmetic, for every host implementation.
#include <cstdint>

#include "thresher/append.hpp"

namespace thresher::reference {

/// Element `index`.
inline std::int64_t number(const TokenNumbers& numbers, std::int64_t index) {
  return numbers.bits == 32 ? static_cast<const std::int32_t*>(numbers.data)[index]
                            : static_cast<const std::int64_t*>(numbers.data)[index];
}

/// Element offset of a row of a head of a token in [T,H,D].
inline std::int64_t token_offset(const Tensor& tensor, std::int64_t token, std::int64_t head) {
  return token * tensor.strides[0] + head * tensor.strides[1];
}

/// The same for the row of a page pool that a slot names.
inline std::int64_t slot_offset(const Tensor& pool, std::int64_t slot, std::int64_t head) {
  return slot / pool.shape[1] * pool.strides[0] + slot % pool.shape[1] * pool.strides[1] + head * pool.strides[2];
}

inline std::int64_t rotary_dim(const AppendProblem& problem) {
  if (problem.pairs == RotaryPairs::none) {
    return 0;
  }
  return problem.rotary_dim == 0 ? problem.head_dim : problem.rotary_dim;
}

inline std::int64_t value_dim(const AppendProblem& problem) {
  return problem.value_dim == 0 ? problem.head_dim : problem.value_dim;
}

inline Format kv_format(const AppendProblem& problem) { return problem.kv_format.value_or(problem.format); }

/// The columns of pair `pair`.
struct Pair {
  std::int64_t x;
  std::int64_t y;
};

inline Pair pair_of(const AppendProblem& problem, std::int64_t pair) {
  if (problem.pairs == RotaryPairs::interleaved) {
    return {2 * pair, 2 * pair + 1};
  }
  return {pair, pair + rotary_dim(problem) / 2};
}

/// The factor of FP8 values in the pages of a head.
inline float descale_of(const Tensor& descale, std::int64_t head) {
  return descale.data == nullptr ? 1.0F : static_cast<const float*>(descale.data)[head * descale.strides[0]];
}

}  // namespace thresher::reference
