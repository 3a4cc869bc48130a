#pragma once
/// One block's share of a product, for the loops of every vector width.
#include <cstdint>

namespace thresher::cpu {

/// D[rows, columns] = L[rows, depth]·R[depth, columns], or D += L·R, where R is one block of a panel.
struct BlockProduct {
  std::int64_t rows;
  std::int64_t columns;  ///< of D; the block may have more
  std::int64_t depth;
  std::int64_t block_columns;
  const float* left;
  std::int64_t left_stride;
  const float* block;
  float* out;
  std::int64_t out_stride;
  bool accumulate;
};

}  // namespace thresher::cpu
