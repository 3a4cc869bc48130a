#pragma once
/// The accumulators of one consumer warpgroup: `count` tiles of 64 rows.
#include "machine/matrix_engine.hpp"

namespace thresher::pipeline {

using namespace machine;

template <MatrixEngine Engine, int tile_columns, int tile_count>
struct AccumulatorTiles {
  static constexpr int columns = tile_columns;
  static constexpr int count = tile_count;
  using Accumulators = typename Engine::template Accumulators<columns>;
  static constexpr int elements = Accumulators::elements;

  Accumulators tile[count];

  TH_DEVICE void clear() {
    TH_UNROLL
    for (int t = 0; t < count; ++t) {
      TH_UNROLL
      for (int i = 0; i < elements; ++i) {
        tile[t].set(i, 0.0F);
      }
    }
  }

  TH_DEVICE void settle() {
    TH_UNROLL
    for (int t = 0; t < count; ++t) {
      Engine::settle(tile[t]);
    }
  }
};

}  // namespace thresher::pipeline
