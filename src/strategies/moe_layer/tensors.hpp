#pragma once
/// The tensors of what a layer of experts does around its products, in the order in which CallTensors has them.
#include <array>
#include <cstddef>

#include "thresher/tensor.hpp"

namespace thresher::strategies::moe_layer {

/// Of sorting the choices.
enum RouteTensor : std::size_t {
  ids_index,      ///< int32 [tokens, top_k]
  offsets_index,  ///< int32 [experts + 1]
  row_ids_index,  ///< int32 [choices]: a row's choice, −1 behind the last row
  inverse_index,  ///< int32 [tokens, top_k]: a choice's row, −1 where its id is of no expert
  route_tensor_count,
};

/// Of adding up the rows.
enum CombineTensor : std::size_t {
  rows_index,             ///< [choices, hidden_size]
  combine_inverse_index,  ///< int32 [tokens, top_k]
  weights_index,          ///< fp32 [tokens, top_k]
  out_index,              ///< [tokens, hidden_size]
  combine_tensor_count,
};

inline constexpr std::array<const char*, route_tensor_count> route_names{"topk_ids", "offsets", "row_ids", "inverse"};
inline constexpr std::array<const char*, combine_tensor_count> combine_names{"rows", "inverse", "topk_weights", "out"};

}  // namespace thresher::strategies::moe_layer
