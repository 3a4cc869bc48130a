#pragma once
/// The tensors of an append's call, in the order in which CallTensors has them.
#include <array>
#include <cstddef>

#include "strategies/planned_call.hpp"
#include "thresher/append.hpp"

namespace thresher::strategies::append {

/// A tensor that a call does without has null data. Positions and slots are rows of int32: two of them are one number
/// of 64 bits.
enum TensorIndex : std::size_t {
  query_index,
  query_out_index,
  key_index,
  value_index,
  key_out_index,
  positions_index,
  slots_index,
  table_index,  ///< cos_sin
  key_cache_index,
  value_cache_index,
  key_descale_index,
  value_descale_index,
  tensor_count,
};

inline constexpr std::array<const char*, tensor_count> tensor_names{
    "q", "q_out", "k", "v", "k_out", "positions", "slots", "cos_sin", "k_cache", "v_cache", "k_descale", "v_descale"};

/// [tokens, 1 or 2].
[[nodiscard]] inline Tensor view_of(const TokenNumbers& numbers, std::int64_t tokens, DeviceId device) {
  return Tensor::contiguous(const_cast<void*>(numbers.data), Format::int32, {tokens, numbers.bits / 32}, device);
}

[[nodiscard]] inline std::array<Tensor, tensor_count> in_order(const AppendTensors& of) {
  const std::int64_t tokens = of.k.shape[0];
  return {of.q,
          of.q_out,
          of.k,
          of.v,
          of.k_out,
          view_of(of.positions, tokens, of.k.device),
          view_of(of.slots, tokens, of.k.device),
          of.cos_sin,
          of.k_cache,
          of.v_cache,
          of.k_descale,
          of.v_descale};
}

}  // namespace thresher::strategies::append
