#pragma once
/// Adds up the partial sums of the two groups of blocks with split K, through distributed shared memory. Each block
/// sends its sums for the other's half of the columns, and adds the received sums when it loads its own half
/// (SplitSums). Both process a chunk of columns at a time, so that the width of a tile needs no registers.
///
/// `ready`: 1 arrival by each epilogue warp of the OTHER block, when its stages are drained and may be overwritten.
/// `landed`: armed once, at the start, with the bytes that the other block will send; its asynchronous stores complete
/// it. It can run once per launch: a persistent block would refill the stages that receive the partial sums.
#include "machine/barrier.hpp"
#include "machine/cluster.hpp"
#include "machine/debug.hpp"
#include "machine/launch.hpp"
#include "machine/warp.hpp"
#include "pipeline/tensor_shape.hpp"
#include "pipeline/tensor_sums.hpp"

namespace thresher::pipeline {

template <TensorShape shape>
class TensorMerge {
 public:
  /// `memory` is the block's; `half` is the half of the columns that this block keeps: its group's index among the two.
  TH_DEVICE TensorMerge(Shared<u8> memory, Barrier barriers, u32 half, u32 other_block)
      : landing_(memory), ready_(barriers), landed_(barriers.offset(1)), half_(half), other_block_(other_block) {}

  /// One thread calls it before the first cluster barrier.
  TH_DEVICE void init() const {
    ready_.init(finishing_warps);
    landed_.init(1);
    landed_.arrive_expect_bytes(landing_bytes(shape));
    debug::name_barrier(ready_, "merge ready");
    debug::name_barrier(landed_, "merge landed");
  }

  /// All epilogue threads call it when the products have retired. Returns the sums of this block's half, once those of
  /// the other block have arrived.
  TH_DEVICE SplitSums<shape> run(TensorSums sums) const {
    if (warp::lane() == 0) {
      cluster::map(ready_, other_block_).arrive();
    }
    ready_.wait_cluster(Phase{0});
    send(sums);
    landed_.wait_cluster(Phase{0});
    return {sums, half_, landing_.as<SumQuad>()};
  }

 private:
  static constexpr u32 columns = sent_columns(shape);

  TH_DEVICE void send(TensorSums sums) const {
    const Remote<SumQuad> destination = cluster::map(landing_.as<SumQuad>(), other_block_);
    const RemoteBarrier landed = cluster::map(landed_, other_block_);
    // Not unrolled over chunks, to limit the code size.
    TH_NO_UNROLL
    for (u32 first = 0; first < half_columns(shape); first += columns) {
      const auto chunk = sums.template chunk<columns>(column_of_half(shape, half_ ^ 1U, first));
      TH_UNROLL
      for (u32 slab = 0; slab < slabs; ++slab) {
        TH_UNROLL
        for (u32 group = 0; group < columns / 8; ++group) {
          SumQuad sent;
          TH_UNROLL
          for (u32 e = 0; e < 4; ++e) {
            sent.at[e] = chunk.get(slab, group * 4 + e);
          }
          cluster::store_async(destination.offset(quad_place(first + group * 8, slab)), sent, landed);
        }
      }
    }
  }

  Shared<u8> landing_;
  Barrier ready_;
  Barrier landed_;
  u32 half_;
  u32 other_block_;
};

}  // namespace thresher::pipeline
