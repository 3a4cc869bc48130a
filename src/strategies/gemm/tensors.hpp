#pragma once
/// The tensors of a product's call, in the order in which CallTensors has them, and what its workspace begins with.
///
/// A call may end with the last tensor that it has: tensor_at gives an empty one, of rank 0, for those behind. A dual
/// GEMM brings weights [N,K]. Every other product brings stacks [E,N,K], one matrix for each expert (expert_matrix); a
/// GEMM has one expert. A product of one matrix brings it as the gate.
#include <array>
#include <cstddef>
#include <cstdint>

#include "core/grouped_weights.hpp"
#include "strategies/gemm/problem.hpp"
#include "strategies/launch_tools.hpp"
#include "strategies/planned_call.hpp"
#include "strategies/status_words.hpp"

namespace thresher::strategies::gemm {

enum TensorIndex : std::size_t {
  tokens_index,  ///< a [rows,K], masked: [E,capacity,K], gathered: [tokens,K]
  gate_index,    ///< [N,K] or [E,N,K]; packed weights keep its shape and global scales alone
  up_index,      ///< likewise; rank 0 where there is one matrix
  output_index,  ///< c [rows,N], masked: [E,capacity,N]
  dense_tensor_count,
  gate_bias_index = dense_tensor_count,  ///< [E,N]; rank 0 where there is none, as is what follows
  up_bias_index,
  groups_index,   ///< int32: offsets [E+1], masked: counts [E]
  row_ids_index,  ///< int32 [rows], gathered
  row_weights_index,
  tensor_count,
  profile_index = tensor_count,  ///< of a profiled call: 64-bit words (pipeline/timeline.hpp)
};

/// No product reads what a call has behind these.
inline constexpr std::size_t product_tensor_count = profile_index + 1;

/// The first piece of the workspace of a call that has offsets: words with flags of GroupedStatus, one for each block.
inline constexpr std::size_t status_piece = 0;

inline const Tensor& tensor_at(const CallTensors& call, std::size_t index) {
  static const Tensor none{};
  return index < call.tensors.size() ? call.tensors[index] : none;
}
inline const Tensor& tokens_of(const CallTensors& call) { return call.tensors[tokens_index]; }
inline const Tensor& gate_of(const CallTensors& call) { return call.tensors[gate_index]; }
inline const Tensor& up_of(const CallTensors& call) { return call.tensors[up_index]; }
inline const Tensor& output_of(const CallTensors& call) { return call.tensors[output_index]; }

/// Where a profiled call leaves its timestamps; 0 in any other call.
inline std::uint64_t profile_address(const CallTensors& call) {
  return device_address(tensor_at(call, profile_index).data);
}

/// Extents and strides of weights, of one expert or of many.
struct WeightExtents {
  std::int64_t experts = 1;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t expert_stride = 0;
  std::int64_t row_stride = 0;
};
inline WeightExtents weight_extents(const Tensor& weights) {
  return weights.rank == 3 ? WeightExtents{weights.shape[0], weights.shape[1], weights.shape[2], weights.strides[0],
                                           weights.strides[1]}
                           : WeightExtents{1, weights.shape[0], weights.shape[1], weights.shape[0] * weights.strides[0],
                                           weights.strides[0]};
}

/// The tensors of a call that has offsets, in that order.
inline std::array<Tensor, tensor_count> in_order(const WeightViews& weights, const GroupedTensors& of) {
  return {of.a,
          weights.gate,
          weights.up,
          of.c,
          weights.gate_bias,
          weights.up_bias,
          of.counts.rank > 0 ? of.counts : of.offsets,
          of.row_ids,
          of.row_weights};
}

/// The same by their names.
inline WeightViews weights_of(const CallTensors& call) {
  return {call.tensors[gate_index], call.tensors[up_index], tensor_at(call, gate_bias_index),
          tensor_at(call, up_bias_index)};
}
inline GroupedTensors tensors_of(const ProductProblem& problem, const CallTensors& call) {
  GroupedTensors tensors{.a = tokens_of(call),
                         .c = output_of(call),
                         .row_ids = tensor_at(call, row_ids_index),
                         .row_weights = tensor_at(call, row_weights_index)};
  (problem.layout == ProductRows::masked ? tensors.counts : tensors.offsets) = tensor_at(call, groups_index);
  return tensors;
}

}  // namespace thresher::strategies::gemm
