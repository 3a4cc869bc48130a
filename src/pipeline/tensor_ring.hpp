#pragma once
/// The ring of slots between the loaders and the multiplying warp of a group of blocks, and the barriers of its sums.
///
/// full[s], the leading block's alone: 1 arrival by each block's loader plus the bytes that it brings, whichever block
/// they go to. empty[s], in each block: 1 arrival by the commit behind the slot's products, which also says that its
/// set of scale columns is read no more. sums_full[a], in each block: 1 by the commit behind a tile's last product.
/// sums_empty[a], the leading block's alone: 1 by each finishing warp of the group. The loader's first wait on a slot
/// is for the phase before the first: it passes.
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

  /// One thread calls it before anyone uses the ring.
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

  /// A loader says how much it brings to a slot, or that it brings nothing.
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

  /// The multiplying thread waits for what the group's other blocks do.
  TH_DEVICE void await(Barrier barrier, Phase phase) const {
    if constexpr (shape.group == Group::pair) {
      barrier.wait_cluster(phase);
    } else {
      barrier.wait(phase);
    }
  }

  /// Tells each block of the group when all that the multiplying thread has issued is done.
  TH_DEVICE void commit(Barrier done) const {
    if constexpr (shape.group == Group::pair) {
      tcgen05::commit_multicast<shape.group>(done, static_cast<u16>(3U << leader_));
    } else {
      tcgen05::commit<shape.group>(done);
    }
  }

  /// A finishing warp, which has loaded what it needs, gives an accumulator back.
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
