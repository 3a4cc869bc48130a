#pragma once
/// Fragments of some columns of a grouped tile, for each of its accumulators: `matrix[a].get(slab, i)` with the
/// numbering of tensor_memory::load_fragments.
#include "pipeline/tensor_sums.hpp"

namespace thresher::pipeline {

/// As loaded from tensor memory.
template <int accumulators, int count>
struct TensorChunks {
  static constexpr u32 columns = count;
  TensorSums::Chunk<count> matrix[accumulators];
};

/// The columns from `first` on of accumulators that are `distance` columns apart.
template <int accumulators, int count>
TH_DEVICE TensorChunks<accumulators, count> load_chunks(const TensorSums& sums, u32 distance, u32 first) {
  static_assert(accumulators == 1 || accumulators == 2);
  if constexpr (accumulators == 1) {
    return {{sums.chunk<count>(first)}};
  } else {
    return {{sums.chunk<count>(first), sums.chunk<count>(distance + first)}};
  }
}

/// In registers.
template <int accumulators, int count>
struct RegisterChunks {
  static constexpr u32 columns = count;
  struct Fragment {
    float value[slabs][count / 2];
    TH_DEVICE float get(int slab, int i) const { return value[slab][i]; }
  };
  Fragment matrix[accumulators];
};

}  // namespace thresher::pipeline
