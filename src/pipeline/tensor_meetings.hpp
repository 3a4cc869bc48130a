#pragma once
/// The synchronisation points of a kernel with accumulators in tensor memory. Barriers are initialised in all blocks of
/// the cluster, tensor memory is allocated, and tensor memory is no longer used. Every warp calls the three in that
/// order.
#include "machine/cluster.hpp"
#include "machine/named_barrier.hpp"
#include "machine/tensor_memory.hpp"
#include "pipeline/tensor_shape.hpp"

namespace thresher::pipeline {

template <TensorShape shape>
class ClusterSync {
 public:
  /// `memory` is the block's.
  TH_DEVICE explicit ClusterSync(Shared<u8> memory)
      : place_(memory.offset_bytes(place_offset(shape)).template as<u32>()) {}

  /// Four words for the epilogue warps.
  TH_DEVICE Shared<u32> scratch() const { return place_.offset(4); }

  /// The barriers of the cluster's blocks are initialised. Without a cluster the second point covers this, and the
  /// producer, which has initialised them, starts at once.
  TH_DEVICE void sync_barriers() const {
    if constexpr (in_cluster) {
      cluster::arrive_relaxed();
      cluster::wait();
    }
  }

  /// One warp of each block allocates all tensor memory.
  TH_DEVICE tensor_memory::Columns take() const {
    tensor_memory::allocate<shape.group, tensor_memory::all_columns>(place_);
    tensor_memory::give_up_allocation<shape.group>();
    return sync_allocated();
  }
  /// The other warps that use it receive its address.
  TH_DEVICE tensor_memory::Columns sync_allocated() const {
    tensor_memory::before_barrier();
    if constexpr (in_cluster) {
      cluster::arrive();
      cluster::wait();
    } else {
      named_barrier::sync(taken_barrier, threads(shape));
    }
    tensor_memory::after_barrier();
    return {place_.load()};
  }
  /// For the producer, which does not use it: it signals that its barriers are initialised, and loads before it waits.
  TH_DEVICE void arrive_taken() const {
    if constexpr (in_cluster) {
      cluster::arrive();
    } else {
      named_barrier::arrive(taken_barrier, threads(shape));
    }
  }
  TH_DEVICE void wait_taken() const {
    if constexpr (in_cluster) {
      cluster::wait();
    }
  }

  /// No warp uses tensor memory any more, nor another block's barriers. The warp that allocated it frees it.
  TH_DEVICE void give_back(bool took) const {
    tensor_memory::before_barrier();
    if constexpr (in_cluster) {
      cluster::arrive();
      cluster::wait();
    } else {
      block::sync();
    }
    tensor_memory::after_barrier();
    if (took) {
      tensor_memory::deallocate<shape.group, tensor_memory::all_columns>({place_.load()});
    }
  }

 private:
  static constexpr bool in_cluster = cluster_blocks(shape) > 1;
  static constexpr u32 taken_barrier = 15;

  Shared<u32> place_;
};

}  // namespace thresher::pipeline
