#pragma once
/// The tensors of a grouped product's call, in the order in which CallTensors has them, and what its workspace begins
/// with. Both operations, the grouped dual GEMM and the grouped GEMM, are calls of a GroupedProblem: gate and up where
/// it has an activation, else one matrix an expert, which comes as the gate.
#include <array>
#include <cstddef>
#include <cstdint>

#include "core/grouped_weights.hpp"
#include "strategies/planned_call.hpp"
#include "strategies/status_words.hpp"
#include "thresher/grouped_gemm.hpp"

namespace thresher::strategies::grouped_gemm {

enum TensorIndex : std::size_t {
  tokens_index,     ///< a [rows,K], slots: [E,capacity,K], gathered: [tokens,K]
  gate_index,       ///< [E,N,K] as core/grouped_weights.hpp says; packed weights keep its shape and global scales alone
  up_index,         ///< likewise; rank 0 where there is one matrix
  gate_bias_index,  ///< [E,N]; rank 0 where there is none, as is what follows
  up_bias_index,
  output_index,   ///< c [rows,N], slots: [E,capacity,N]
  groups_index,   ///< int32: offsets [E+1], slots: counts [E]
  row_ids_index,  ///< int32 [rows], gathered
  row_weights_index,
  tensor_count,
  profile_index = tensor_count,  ///< of a profiled call: 64-bit words (pipeline/timeline.hpp)
};

/// No product reads what a call has behind these: whoever does something else in the same call.
inline constexpr std::size_t product_tensor_count = profile_index + 1;

/// The first piece of every grouped call's workspace, so that it lies at its beginning: words with flags of
/// GroupedStatus, of a kernel one for each of its blocks.
inline constexpr std::size_t status_piece = 0;

inline std::array<Tensor, tensor_count> in_order(const WeightViews& weights, const GroupedTensors& of) {
  return {of.a,
          weights.gate,
          weights.up,
          weights.gate_bias,
          weights.up_bias,
          of.c,
          of.counts.rank > 0 ? of.counts : of.offsets,
          of.row_ids,
          of.row_weights};
}

/// The same by their names.
inline WeightViews weights_of(const CallTensors& call) {
  return {call.tensors[gate_index], call.tensors[up_index], call.tensors[gate_bias_index], call.tensors[up_bias_index]};
}
inline GroupedTensors tensors_of(const GroupedProblem& problem, const CallTensors& call) {
  GroupedTensors tensors{.a = call.tensors[tokens_index],
                         .c = call.tensors[output_index],
                         .row_ids = call.tensors[row_ids_index],
                         .row_weights = call.tensors[row_weights_index]};
  (problem.layout == RowLayout::slots ? tensors.counts : tensors.offsets) = call.tensors[groups_index];
  return tensors;
}

}  // namespace thresher::strategies::grouped_gemm
