#pragma once
/// The tensors of an MoE layer's calls around its products, in the order in which CallTensors has them.
#include <algorithm>
#include <array>
#include <cstddef>

#include "strategies/gemm/tensors.hpp"
#include "thresher/tensor.hpp"

namespace thresher::strategies::moe_layer {

/// A layer's first product permutes the assignments (with_routing). Its call has these tensors behind those of every
/// grouped product. It writes its own offsets, int32 [experts + 1], and row ids, int32 [choices]: a row's assignment,
/// −1 behind the last row.
enum RoutedTensor : std::size_t {
  ids_index = gemm::product_tensor_count,  ///< int32 [tokens, top_k]
  inverse_index,  ///< int32 [tokens, top_k]: an assignment's row, −1 where its id names no expert
  x_index,        ///< [tokens, K] in 16 bits, where the call quantizes it to the product's a; else of rank 0
  routed_tensor_count,
};

/// Those two; null where the caller gives offsets and row ids.
struct RoutedTensors {
  Tensor topk_ids{};
  Tensor inverse{};
  Tensor x{};  ///< x_index
};

inline std::array<Tensor, routed_tensor_count> in_order(const WeightViews& weights, const GroupedTensors& of,
                                                        const RoutedTensors& routed) {
  std::array<Tensor, routed_tensor_count> all{};
  const auto of_product = gemm::in_order(weights, of);
  std::copy(of_product.begin(), of_product.end(), all.begin());
  all[ids_index] = routed.topk_ids;
  all[inverse_index] = routed.inverse;
  all[x_index] = routed.x;
  return all;
}

/// The tensors of the call that combines rows.
enum CombineTensor : std::size_t {
  rows_index,             ///< [choices, hidden_size]
  combine_inverse_index,  ///< int32 [tokens, top_k]
  weights_index,          ///< fp32 [tokens, top_k]
  out_index,              ///< [tokens, hidden_size]
  combine_tensor_count,
};

inline constexpr std::array<const char*, combine_tensor_count> combine_names{"rows", "inverse", "topk_weights", "out"};

}  // namespace thresher::strategies::moe_layer
