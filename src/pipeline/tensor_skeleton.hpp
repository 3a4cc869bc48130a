#pragma once
/// The body of a kernel whose sums lie in tensor memory: one warp fills the ring, one thread of a group of blocks
/// issues its products, four warps finish. The operation says what they load, multiply and write
/// (pipeline/tensor_operation.hpp).
///
/// Each slot has a set of scale columns of its own. Who sees full[s] knows that the loader saw empty[s], which came
/// from the commit behind the products that last read set s: scales may be copied over it without a further wait.
///
/// Order: barriers are made; the cluster meets; tensor memory is taken; the cluster meets; roles; the cluster meets;
/// tensor memory is given back. The loaders need the first meeting alone, and fill their slots while tensor memory is
/// taken.
#include "machine/cluster.hpp"
#include "machine/debug.hpp"
#include "machine/fence.hpp"
#include "machine/launch.hpp"
#include "machine/named_barrier.hpp"
#include "machine/warp.hpp"
#include "pipeline/tensor_meetings.hpp"
#include "pipeline/tensor_merge.hpp"
#include "pipeline/tensor_operation.hpp"
#include "pipeline/tensor_ring.hpp"
#include "pipeline/timeline.hpp"

namespace thresher::pipeline {

template <TensorOperation Operation>
class TensorSkeleton {
 public:
  static constexpr TensorShape shape = CheckedTensorOperation<Operation>::shape;

  TH_DEVICE explicit TensorSkeleton(const Operation& operation)
      : operation_(operation),
        memory_(launch::shared_memory()),
        rank_(cluster_blocks(shape) > 1 ? cluster::rank() : 0),
        member_(rank_ % group_blocks(shape)),
        half_(rank_ / group_blocks(shape)),
        cluster_(launch::block_index().x / cluster_blocks(shape)),
        clusters_(launch::block_count().x / cluster_blocks(shape)),
        ring_(memory_, rank_),
        meetings_(memory_) {}

  TH_DEVICE void run() const {
    const u32 warp = warp::index();
    launch::release_dependents();
    if (warp == loading_warp) {
      debug::role("load");
      mark_first(loader_role, Moment::started);
      init();
      meetings_.sync_barriers();
      meetings_.arrive_taken();
      load();
      meetings_.wait_taken();
    } else if (warp == multiplying_warp) {
      debug::role("multiply");
      mark_first(multiplier_role, Moment::started);
      meetings_.sync_barriers();
      const tensor_memory::Columns columns = meetings_.take();
      if (member_ == 0 && warp::elect()) {
        multiply(columns);
      }
      warp::sync();
    } else {
      debug::role("finish");
      mark_first(finisher_role, Moment::started);
      meetings_.sync_barriers();
      finish(meetings_.sync_allocated());
    }
    meetings_.give_back(warp == multiplying_warp);
  }

 private:
  static constexpr u32 finishing_threads = finishing_warps * 32;
  static constexpr u32 drained_barrier = 14;

  // --- profile

  static constexpr u32 finisher_role = 0;
  static constexpr u32 multiplier_role = 1;
  static constexpr u32 loader_role = 2;

  /// One thread of a role calls it.
  TH_DEVICE void mark(u32 role, Moment moment) const {
    if constexpr (shape.profiled) {
      Timeline<profile_shape(shape)>(operation_.profile()).mark(role, moment);
    }
  }
  /// All threads of a role call it: the first of its first warp marks.
  TH_DEVICE void mark_first(u32 role, Moment moment) const {
    if (role == finisher_role ? launch::thread_index() == 0 : warp::lane() == 0) {
      mark(role, moment);
    }
  }

  TH_DEVICE void init() const {
    if (warp::lane() == 0) {
      operation_.prefetch();
      ring_.init();
      if constexpr (shape.split_groups > 1) {
        merge().init();
      }
      fence::barrier_init();
    }
    warp::sync();
  }

  // --- tiles

  /// Calls `work(index)` for each tile of this cluster.
  template <class Work>
  TH_DEVICE void each_tile(const Work& work) const {
    for (u32 index = cluster_; index < operation_.tiles(); index += clusters_) {
      work(index);
      if constexpr (!shape.persistent) {
        break;
      }
    }
  }

  TH_DEVICE u32 step_at(u32 half) const { return half * operation_.k_steps() / shape.split_groups; }

  // --- loading

  TH_DEVICE bool is_loaded(u32 index) const {
    return shape.ablation != Ablation::products_only || index < static_cast<u32>(shape.stages);
  }

  using Ring = TensorRing<shape>;
  using SlotCursor = Cursor<shape.stages>;

  TH_DEVICE LoadSlot acquire(const SlotCursor& at) const {
    ring_.empty(at.slot).wait(Phase{at.phase.parity ^ 1U});
    return {ring_.slot(at.slot), ring_.full(at.slot)};
  }

  TH_DEVICE void load() const {
    mark_first(loader_role, Moment::ready);
    SlotCursor at;
    bool earlier_grids_ended = false;
    each_tile([&](u32 index) {
      const auto tile = operation_.tile(index, member_);
      u32 step = step_at(half_);
      if (!earlier_grids_ended) {
        step = load_ring_ahead(at, tile);
        earlier_grids_ended = true;
      }
      const u32 end = step_at(half_ + 1);
      TH_NO_UNROLL
      for (; step < end; ++step) {
        const LoadSlot slot = acquire(at);
        if (warp::elect()) {
          if (is_loaded(step - step_at(half_))) {
            ring_.announce(at.slot, Operation::slot_load_bytes);
            operation_.load_constant(slot, tile, step);
            operation_.load_fresh(slot, tile, step);
          } else {
            ring_.announce_nothing(at.slot);
          }
        }
        warp::sync();
        at.advance();
      }
    });
    mark_first(loader_role, Moment::finished);
  }

  /// Fills the ring with constants, waits for earlier grids, adds the rest. Returns the step behind the last.
  template <class Tile>
  TH_DEVICE u32 load_ring_ahead(SlotCursor& at, const Tile& tile) const {
    const u32 first = step_at(half_);
    const u32 steps = step_at(half_ + 1) - first;
    const u32 end = first + (steps < static_cast<u32>(shape.stages) ? steps : static_cast<u32>(shape.stages));
    if (warp::elect()) {
      mark(loader_role, Moment::first_slot);
      TH_NO_UNROLL
      for (u32 step = first; step < end; ++step) {
        const u32 slot = step - first;
        ring_.announce(slot, Operation::slot_load_bytes);
        operation_.load_constant({ring_.slot(slot), ring_.full(slot)}, tile, step);
      }
    }
    warp::sync();
    launch::wait_for_earlier_grids();
    if (warp::elect()) {
      TH_NO_UNROLL
      for (u32 step = first; step < end; ++step) {
        const u32 slot = step - first;
        operation_.load_fresh({ring_.slot(slot), ring_.full(slot)}, tile, step);
      }
    }
    warp::sync();
    at.skip(end - first);
    return end;
  }

  // --- multiplying

  /// With loads_only the first slot is multiplied, so that the accumulators have a value.
  static TH_DEVICE bool is_multiplied(u32 step) { return shape.ablation != Ablation::loads_only || step == 0; }

  TH_DEVICE void multiply(tensor_memory::Columns columns) const {
    mark(multiplier_role, Moment::ready);
    SlotCursor at;
    Cursor<shape.sums> sums;
    const u32 steps = step_at(half_ + 1) - step_at(half_);
    each_tile([&](u32) {
      if constexpr (shape.persistent) {
        ring_.await(ring_.sums_empty(sums.slot), Phase{sums.phase.parity ^ 1U});
      }
      TH_NO_UNROLL
      for (u32 step = 0; step < steps; ++step) {
        ring_.await(ring_.full(at.slot), at.phase);
        tensor_memory::after_barrier();
        if (step == 0) {
          mark(multiplier_role, Moment::first_slot);
        }
        if (is_multiplied(step)) {
          operation_.multiply(ring_.slot(at.slot), columns.plus(sums.slot * shape.sum_columns),
                              columns.plus(static_cast<u32>(set_offset(shape, 0)) + at.slot * shape.scale_columns),
                              step == 0);
        }
        ring_.commit(ring_.empty(at.slot));
        at.advance();
      }
      ring_.commit(ring_.sums_full(sums.slot));
      sums.advance();
    });
    mark(multiplier_role, Moment::finished);
  }

  // --- finishing

  TH_DEVICE Shared<u8> staging() const { return memory_.offset_bytes(staging_offset(shape)); }

  TH_DEVICE void finish(tensor_memory::Columns columns) const {
    launch::wait_for_earlier_grids();
    mark_first(finisher_role, Moment::ready);
    Cursor<shape.sums> at;
    each_tile([&](u32 index) {
      const auto tile = operation_.tile(index, member_);
      const auto ahead = operation_.ahead(tile, half_, meetings_.scratch());
      ring_.sums_full(at.slot).wait(at.phase);
      tensor_memory::after_barrier();
      mark_first(finisher_role, Moment::drained);
      finish_tile(TensorSums(columns.plus(at.slot * shape.sum_columns)), tile, ahead);
      if constexpr (shape.persistent) {
        ring_.give_back(at.slot);
      }
      at.advance();
      mark_first(finisher_role, Moment::finished);
    });
  }

  template <class Tile, class Ahead>
  TH_DEVICE void finish_tile(TensorSums sums, const Tile& tile, const Ahead& ahead) const {
    if constexpr (shape.split_groups > 1) {
      const SplitSums<shape> merged = merge().run(sums);
      mark_first(finisher_role, Moment::merged);
      finish_ablated(merged, tile, ahead);
    } else {
      if constexpr (shape.persistent) {
        // The tile before may still be leaving the staging.
        named_barrier::sync(drained_barrier, finishing_threads);
      }
      mark_first(finisher_role, Moment::merged);
      finish_ablated(sums, tile, ahead);
    }
  }

  /// There are never 2^32 − 1 tiles; but sums that nothing could ever read would be taken away with their products.
  template <class Sums, class Tile, class Ahead>
  TH_DEVICE void finish_ablated(const Sums& sums, const Tile& tile, const Ahead& ahead) const {
    if (shape.ablation != Ablation::no_epilogue || operation_.tiles() == 0xFFFFFFFFU) {
      operation_.finish(sums, tile, half_, staging(), ahead);
    }
    if constexpr (shape.ablation == Ablation::epilogue_twice) {
      named_barrier::sync(drained_barrier, finishing_threads);
      operation_.finish(sums, tile, half_, staging(), ahead);
    }
  }

  TH_DEVICE TensorMerge<shape> merge() const { return {memory_, ring_.merge(), half_, rank_ ^ group_blocks(shape)}; }

  const Operation& operation_;
  Shared<u8> memory_;
  u32 rank_;
  u32 member_;   ///< of the group that shares a product; 0 leads it
  u32 half_;     ///< which part of the k range
  u32 cluster_;  ///< whose tiles these are
  u32 clusters_;
  Ring ring_;
  ClusterSync<shape> meetings_;
};

template <TensorOperation Operation>
TH_DEVICE void run_tensor(const Operation& operation) {
  TensorSkeleton<Operation>(operation).run();
}

}  // namespace thresher::pipeline
