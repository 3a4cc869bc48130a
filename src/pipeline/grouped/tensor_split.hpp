#pragma once
/// Adds up the partial sums of two groups of blocks with split K, tile after tile, through distributed shared memory. A
/// block sends its sums for the half of a tile's columns that the other one finishes.
///
/// `ready`: for each tile 1 arrival by each epilogue warp of the OTHER block, when it has read the previous tile's data
/// in its landing buffer. `landed`: for each tile 1 arrival of an epilogue thread of the block, with the bytes that the
/// other block's asynchronous stores complete.
#include "machine/barrier.hpp"
#include "machine/cluster.hpp"
#include "machine/debug.hpp"
#include "machine/launch.hpp"
#include "machine/warp.hpp"
#include "pipeline/grouped/tensor_chunks.hpp"
#include "pipeline/tensor_shape.hpp"

namespace thresher::pipeline {

class TensorSplit {
 public:
  /// `half` is the half of the columns that this block keeps.
  TH_DEVICE TensorSplit(Shared<u8> landing, Barrier barriers, u32 half, u32 other_block)
      : landing_(landing.as<Quad>()),
        ready_(barriers),
        landed_(barriers.offset(1)),
        half_(half),
        other_block_(other_block) {}

  /// One thread calls it before the first cluster barrier.
  TH_DEVICE void init() const {
    ready_.init(finishing_warps);
    landed_.init(1);
    debug::name_barrier(ready_, "split ready");
    debug::name_barrier(landed_, "split landed");
  }

  /// All epilogue threads call it for each tile; the tile's index has the parity of `phase`. They receive the sums of
  /// this block's half of the columns. The lanes of a warp must have synchronised since the call for the previous tile.
  template <int accumulators, int count>
  TH_DEVICE RegisterChunks<accumulators, count / 2> add_up(const TensorChunks<accumulators, count>& sums,
                                                           Phase phase) const {
    constexpr u32 sent_bytes = threads * accumulators * slabs * (count / 4) * sizeof(float);
    if (launch::thread_index() == 0) {
      landed_.arrive_expect_bytes(sent_bytes);
    }
    if (warp::lane() == 0) {
      cluster::map(ready_, other_block_).arrive();
    }
    ready_.wait_cluster(phase);
    send(sums);
    landed_.wait_cluster(phase);
    return add(sums);
  }

 private:
  using Quad = Vector<float, 4>;
  static constexpr u32 threads = finishing_warps * 32;

  /// Each thread's words are `threads` apart, so that a warp's accesses are contiguous.
  static TH_DEVICE u32 place(int quad) { return quad * threads + launch::thread_index(); }

  /// Calls `use(quad, matrix, slab, i)` for each quad of words that is sent or added; `i` counts within a half.
  template <int accumulators, int count, class Use>
  static TH_DEVICE void each_quad(const Use& use) {
    int quad = 0;
    TH_UNROLL
    for (int matrix = 0; matrix < accumulators; ++matrix) {
      TH_UNROLL
      for (int slab = 0; slab < slabs; ++slab) {
        TH_UNROLL
        for (int i = 0; i < count / 4; i += 4) {
          use(quad, matrix, slab, i);
          ++quad;
        }
      }
    }
  }

  template <class Fragment>
  TH_DEVICE float of_half(const Fragment& fragment, int slab, int i, int half_words, bool own) const {
    const float low = fragment.get(slab, i);
    const float high = fragment.get(slab, half_words + i);
    return (half_ == 0) == own ? low : high;
  }

  template <int accumulators, int count>
  TH_DEVICE void send(const TensorChunks<accumulators, count>& sums) const {
    const Remote<Quad> destination = cluster::map(landing_, other_block_);
    const RemoteBarrier landed = cluster::map(landed_, other_block_);
    each_quad<accumulators, count>([&](int quad, int matrix, int slab, int i) {
      Quad sent;
      TH_UNROLL
      for (int e = 0; e < 4; ++e) {
        sent.at[e] = of_half(sums.matrix[matrix], slab, i + e, count / 4, false);
      }
      cluster::store_async(destination.offset(place(quad)), sent, landed);
    });
  }

  template <int accumulators, int count>
  TH_DEVICE RegisterChunks<accumulators, count / 2> add(const TensorChunks<accumulators, count>& sums) const {
    RegisterChunks<accumulators, count / 2> added;
    each_quad<accumulators, count>([&](int quad, int matrix, int slab, int i) {
      const Quad received = landing_.load(place(quad));
      TH_UNROLL
      for (int e = 0; e < 4; ++e) {
        added.matrix[matrix].value[slab][i + e] =
            of_half(sums.matrix[matrix], slab, i + e, count / 4, true) + received.at[e];
      }
    });
    return added;
  }

  Shared<Quad> landing_;
  Barrier ready_;
  Barrier landed_;
  u32 half_;
  u32 other_block_;
};

}  // namespace thresher::pipeline
