#pragma once
/// The sums of a tile as the finishing warps find them: in tensor memory, or in registers where two groups of blocks
/// have added up theirs.
///
/// A warp has 32 rows, two slabs of 16. `chunk<columns>(first)` are the fragments of both slabs: `get(slab, i)` as
/// tensor_memory::load_fragments numbers them.
#include "machine/tensor_memory.hpp"
#include "pipeline/tensor_shape.hpp"

namespace thresher::pipeline {

inline constexpr int slabs = 2;

class TensorSums {
 public:
  TH_DEVICE explicit TensorSums(tensor_memory::Columns at) : at_(at) {}

  template <int columns>
  class Chunk {
   public:
    TH_DEVICE explicit Chunk(tensor_memory::Columns at)
        : lower_(tensor_memory::load_fragments<columns>(at, 0)), upper_(tensor_memory::load_fragments<columns>(at, 1)) {
      tensor_memory::wait_loads(lower_);
      tensor_memory::wait_loads(upper_);
    }
    TH_DEVICE float get(int slab, int i) const { return slab == 0 ? lower_.get_float(i) : upper_.get_float(i); }

   private:
    tensor_memory::Words<columns / 2> lower_;
    tensor_memory::Words<columns / 2> upper_;
  };

  template <int columns>
  TH_DEVICE Chunk<columns> chunk(u32 first) const {
    return Chunk<columns>(at_.plus(first));
  }

 private:
  tensor_memory::Columns at_;
};

/// Both slabs of all columns in registers, as pipeline::Merge reads and leaves them.
template <int columns>
struct RegisterSums {
  static constexpr int count = slabs;
  static constexpr int elements = columns / 2;

  struct Slab {
    float value[elements];
    TH_DEVICE float get(int i) const { return value[i]; }
    TH_DEVICE void set(int i, float to) { value[i] = to; }
  };
  Slab tile[count];

  TH_DEVICE void load(const TensorSums& from) {
    const auto words = from.chunk<columns>(0);
    TH_UNROLL
    for (int slab = 0; slab < slabs; ++slab) {
      TH_UNROLL
      for (int i = 0; i < elements; ++i) {
        tile[slab].value[i] = words.get(slab, i);
      }
    }
  }

  struct Chunk {
    const RegisterSums& sums;
    int first;
    TH_DEVICE float get(int slab, int i) const { return sums.tile[slab].value[first + i]; }
  };
  template <int chunk_columns>
  TH_DEVICE Chunk chunk(u32 first_column) const {
    return {*this, static_cast<int>(first_column) / 2};
  }
};

namespace detail {
template <TensorShape shape>
struct SumsOf {
  using type = TensorSums;
};
template <TensorShape shape>
requires(shape.split_groups > 1) struct SumsOf<shape> {
  using type = RegisterSums<shape.sum_columns>;
};
}  // namespace detail
template <TensorShape shape>
using SumsOf = typename detail::SumsOf<shape>::type;

}  // namespace thresher::pipeline
