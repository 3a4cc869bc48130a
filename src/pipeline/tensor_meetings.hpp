#pragma once
/// Where the warps of a kernel whose sums lie in tensor memory meet: when the barriers of the cluster's blocks are
/// made, when tensor memory is taken, and when nobody uses it any more. Every warp calls the three in that order.
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

  /// Four words of the finishing warps, for themselves.
  TH_DEVICE Shared<u32> scratch() const { return place_.offset(4); }

  /// The barriers of the cluster's blocks are made. Without a cluster the second meeting says so, and the loader, which
  /// has made them, starts at once.
  TH_DEVICE void sync_barriers() const {
    if constexpr (in_cluster) {
      cluster::arrive_relaxed();
      cluster::wait();
    }
  }

  /// One warp of each block takes all tensor memory.
  TH_DEVICE tensor_memory::Columns take() const {
    tensor_memory::allocate<shape.group, tensor_memory::all_columns>(place_);
    tensor_memory::give_up_allocation<shape.group>();
    return sync_allocated();
  }
  /// The other warps that use it learn where it is.
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
  /// The loader does not: it says that what it has written is there, and loads before it waits.
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

  /// Nobody uses tensor memory any more, nor another block's barriers. The warp that took it gives it back.
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
