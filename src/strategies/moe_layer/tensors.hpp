#pragma once
/// The tensors of what a layer of experts does around its products, in the order in which CallTensors has them.
#include <algorithm>
#include <array>
#include <cstddef>

#include "strategies/gemm/tensors.hpp"
#include "thresher/tensor.hpp"

namespace thresher::strategies::moe_layer {

/// Of a layer's first product, which sorts the choices itself (with_routing): behind those that every grouped product
/// has. It writes its own offsets, int32 [experts + 1], and row ids, int32 [choices]: a row's choice, −1 behind the
/// last row.
enum RoutedTensor : std::size_t {
  ids_index = gemm::product_tensor_count,  ///< int32 [tokens, top_k]
  inverse_index,                           ///< int32 [tokens, top_k]: a choice's row, −1 where its id is of no expert
  routed_tensor_count,
};

/// The two that come behind; without a place where the call brings offsets and row ids.
struct RoutedTensors {
  Tensor topk_ids{};
  Tensor inverse{};
};

inline std::array<Tensor, routed_tensor_count> in_order(const WeightViews& weights, const GroupedTensors& of,
                                                        const RoutedTensors& routed) {
  std::array<Tensor, routed_tensor_count> all{};
  const auto of_product = gemm::in_order(weights, of);
  std::copy(of_product.begin(), of_product.end(), all.begin());
  all[ids_index] = routed.topk_ids;
  all[inverse_index] = routed.inverse;
  return all;
}

/// Of adding up the rows.
enum CombineTensor : std::size_t {
  rows_index,             ///< [choices, hidden_size]
  combine_inverse_index,  ///< int32 [tokens, top_k]
  weights_index,          ///< fp32 [tokens, top_k]
  out_index,              ///< [tokens, hidden_size]
  combine_tensor_count,
};

inline constexpr std::array<const char*, combine_tensor_count> combine_names{"rows", "inverse", "topk_weights", "out"};

}  // namespace thresher::strategies::moe_layer
