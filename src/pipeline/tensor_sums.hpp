#pragma once
/// The accumulators of a tile for the epilogue warps. They are in tensor memory; if two groups of blocks share a tile,
/// the sums that the other group has sent are added.
///
/// A warp has 32 rows, two slabs of 16. `chunk<columns>(first)` are the fragments of both slabs: `get(slab, i)` with
/// the numbering of tensor_memory::load_fragments.
#include "machine/launch.hpp"
#include "machine/shared.hpp"
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

// --- a tile with split K

/// One thread's elements of 8 columns of a slab.
using SumQuad = Vector<float, 4>;
/// The offset at which this thread's quad arrives, from the first of its columns within a half: a warp's accesses are
/// contiguous.
TH_DEVICE u32 quad_place(u32 column, u32 slab) {
  return (column / 8 * slabs + slab) * finishing_warps * 32 + launch::thread_index();
}

/// The block's half of the columns, numbered from 0, including the other block's sums for them.
template <TensorShape shape>
class SplitSums {
 public:
  TH_DEVICE SplitSums(TensorSums own, u32 half, Shared<SumQuad> landed) : own_(own), half_(half), landed_(landed) {}

  template <int columns>
  class Chunk {
   public:
    TH_DEVICE Chunk(const SplitSums& sums, u32 first) {
      const auto own = sums.own_.template chunk<columns>(column_of_half(shape, sums.half_, first));
      TH_UNROLL
      for (int slab = 0; slab < slabs; ++slab) {
        TH_UNROLL
        for (int group = 0; group < columns / 8; ++group) {
          const SumQuad other = sums.landed_.load(quad_place(first + group * 8, slab));
          TH_UNROLL
          for (int e = 0; e < 4; ++e) {
            value_[slab][group * 4 + e] = own.get(slab, group * 4 + e) + other.at[e];
          }
        }
      }
    }
    TH_DEVICE float get(int slab, int i) const { return value_[slab][i]; }

   private:
    float value_[slabs][columns / 2];
  };

  /// For one part.
  template <int columns>
  TH_DEVICE Chunk<columns> chunk(u32 first) const {
    return Chunk<columns>(*this, first);
  }

 private:
  TensorSums own_;
  u32 half_;
  Shared<SumQuad> landed_;
};

namespace detail {
template <TensorShape shape>
struct SumsOf {
  using type = TensorSums;
};
template <TensorShape shape>
  requires(shape.split_groups > 1)
struct SumsOf<shape> {
  using type = SplitSums<shape>;
};
}  // namespace detail
template <TensorShape shape>
using SumsOf = typename detail::SumsOf<shape>::type;

}  // namespace thresher::pipeline
