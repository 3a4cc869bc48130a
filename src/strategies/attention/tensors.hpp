#pragma once
/// The tensors of an attention's call, in the order in which CallTensors has them.
#include <array>
#include <cstddef>

#include "strategies/planned_call.hpp"
#include "thresher/attention.hpp"

namespace thresher::strategies::attention {

/// Data of the last three is null where there is none.
enum TensorIndex : std::size_t {
  query_index,
  key_index,
  value_index,
  output_index,
  lse_index,
  query_offsets_index,  ///< cu_seqlens_q
  key_offsets_index,    ///< cu_seqlens_k
  tensor_count,
};

inline std::array<Tensor, tensor_count> in_order(const AttentionTensors& of) {
  return {of.q, of.k, of.v, of.o, of.lse, of.cu_seqlens_q, of.cu_seqlens_k};
}

/// The same by their names.
inline AttentionTensors named(const CallTensors& call) {
  const auto& all = call.tensors;
  return {all[query_index], all[key_index],           all[value_index],      all[output_index],
          all[lse_index],   all[query_offsets_index], all[key_offsets_index]};
}

}  // namespace thresher::strategies::attention
