#pragma once
/// The ring of pipeline stages between the producers and the MMA warp of a group of blocks, and the barriers of its
/// accumulators.
///
/// `full[s]`, only in the leading block: 1 arrival by each block's producer plus the bytes that it loads, to whichever
/// block. `empty[s]`, in each block: 1 arrival by the commit after the stage's products, which also signals that its
/// set of scale columns is no longer read. `sums_full[a]`, in each block: 1 by the commit after a tile's last product.
/// `sums_empty[a]`, only in the leading block: 1 by each epilogue warp of the group. The producer's first wait on a
/// stage is for the phase before the first: it returns at once.
#include "machine/barrier.hpp"
#include "machine/cluster.hpp"
#include "machine/debug.hpp"
#include "machine/tcgen05.hpp"
#include "machine/warp.hpp"
#include "pipeline/ring.hpp"
#include "pipeline/tensor_shape.hpp"

namespace thresher::pipeline {

template <TensorShape shape>
class TensorRing {
 public:
  TH_DEVICE TensorRing(Shared<u8> memory, u32 rank)
      : memory_(memory),
        barriers_{memory.offset_bytes(barrier_offset(shape)).address},
        leader_(rank - rank % group_blocks(shape)) {}

  TH_DEVICE Shared<u8> slot(u32 index) const { return memory_.offset_bytes(index * shape.slot_bytes); }
  TH_DEVICE Barrier full(u32 index) const { return barriers_.offset(index); }
  TH_DEVICE Barrier empty(u32 index) const { return barriers_.offset(shape.stages + index); }
  TH_DEVICE Barrier sums_full(u32 index) const { return barriers_.offset(2 * shape.stages + index); }
  TH_DEVICE Barrier sums_empty(u32 index) const { return barriers_.offset(2 * shape.stages + shape.sums + index); }
  TH_DEVICE Barrier merge() const { return barriers_.offset(2 * shape.stages + 2 * shape.sums); }

  /// One thread calls it before any use of the ring.
  TH_DEVICE void init() const {
    for (u32 s = 0; s < shape.stages; ++s) {
      full(s).init(group_blocks(shape));
      empty(s).init(1);
      debug::name_barrier(full(s), "full", s);
      debug::name_barrier(empty(s), "empty", s);
      debug::name_shared(slot(s), shape.slot_bytes, "slot", s);
    }
    for (u32 a = 0; a < shape.sums; ++a) {
      sums_full(a).init(1);
      sums_empty(a).init(finishing_warps * group_blocks(shape));
      debug::name_barrier(sums_full(a), "sums_full", a);
      debug::name_barrier(sums_empty(a), "sums_empty", a);
    }
  }

  /// A producer announces the bytes that it loads to a stage, or that it loads none.
  TH_DEVICE void announce(u32 index, u32 bytes) const {
    if constexpr (shape.group == Group::pair) {
      cluster::map(full(index), leader_).arrive_expect_bytes(bytes);
    } else {
      full(index).arrive_expect_bytes(bytes);
    }
  }
  TH_DEVICE void announce_nothing(u32 index) const {
    if constexpr (shape.group == Group::pair) {
      cluster::map(full(index), leader_).arrive();
    } else {
      full(index).arrive();
    }
  }

  /// The MMA thread waits for the group's other blocks.
  TH_DEVICE void await(Barrier barrier, Phase phase) const {
    if constexpr (shape.group == Group::pair) {
      barrier.wait_cluster(phase);
    } else {
      barrier.wait(phase);
    }
  }

  /// Signals each block of the group when all that the MMA thread has issued is done.
  TH_DEVICE void commit(Barrier done) const {
    if constexpr (shape.group == Group::pair) {
      tcgen05::commit_multicast<shape.group>(done, static_cast<u16>(3U << leader_));
    } else {
      tcgen05::commit<shape.group>(done);
    }
  }

  /// An epilogue warp releases an accumulator after its loads.
  TH_DEVICE void give_back(u32 accumulator) const {
    tensor_memory::before_barrier();
    warp::sync();
    if (warp::elect()) {
      if constexpr (shape.group == Group::pair) {
        cluster::map(sums_empty(accumulator), leader_).arrive();
      } else {
        sums_empty(accumulator).arrive();
      }
    }
    warp::sync();
  }

 private:
  Shared<u8> memory_;
  Barrier barriers_;
  u32 leader_;
};

}  // namespace thresher::pipeline
