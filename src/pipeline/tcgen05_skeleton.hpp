#pragma once
/// The body of a kernel whose accumulators lie in tensor memory. It processes tile after tile of a source
/// (pipeline/tile_source.hpp). One warp fills the ring, one thread of a group of blocks issues its products, and four
/// warps run the epilogue. The operation loads, multiplies and writes (pipeline/tcgen05_operation.hpp).
///
/// Each slot has a set of scale columns of its own. A thread that sees full[s] knows that the producer saw empty[s],
/// which the commit behind the products that last read set s signals. Scales may be copied over it without a further
/// wait.
///
/// Order: barriers are made; the cluster meets; tensor memory is taken; the cluster meets; roles; the cluster meets;
/// tensor memory is given back. The loaders need the first meeting alone. While tensor memory is taken they fill their
/// slots, or make the directory of groups whose rows only the device knows.
#include "machine/cluster.hpp"
#include "machine/debug.hpp"
#include "machine/fence.hpp"
#include "machine/launch.hpp"
#include "machine/named_barrier.hpp"
#include "machine/warp.hpp"
#include "pipeline/tcgen05_operation.hpp"
#include "pipeline/tensor_meetings.hpp"
#include "pipeline/tensor_merge.hpp"
#include "pipeline/tensor_ring.hpp"
#include "pipeline/tile_source.hpp"
#include "pipeline/timeline.hpp"

namespace thresher::pipeline {

/// Adds up the accumulators of two groups of blocks that share a tile.
template <TensorShape shape, bool is_grouped>
struct SplitOf {
  using Split = TensorMerge<shape>;
};
template <TensorShape shape>
struct SplitOf<shape, true> {
  using Split = TensorSplit;
};

template <class Operation, TileSource Tiles>
class Tcgen05Skeleton {
 public:
  static constexpr TensorShape shape = CheckedTensorOperation<Operation, Tiles::is_made>::shape;

  TH_DEVICE explicit Tcgen05Skeleton(const Operation& operation)
      : operation_(operation),
        memory_(launch::shared_memory()),
        rank_(cluster_blocks(shape) > 1 ? cluster::rank() : 0),
        place_{rank_ % group_blocks(shape), rank_ / group_blocks(shape)},
        cluster_{launch::block_index().x / cluster_blocks(shape), launch::block_count().x / cluster_blocks(shape)},
        ring_(memory_, rank_),
        meetings_(memory_),
        tiles_(tiles(operation, memory_.offset_bytes(directory_offset(shape)), cluster_, place_.member)) {}

  TH_DEVICE void run() const {
    const u32 warp = warp::index();
    launch::release_dependents();
    if (warp == loading_warp) {
      debug::role("load");
      mark_first(loader_role, Moment::started);
      init();
      meetings_.sync_barriers();
      if constexpr (is_grouped) {
        launch::wait_for_earlier_grids();
        const u32 flags = tiles_.make();
        meetings_.arrive_taken();
        load_groups(flags);
      } else {
        meetings_.arrive_taken();
        load_static();
      }
      meetings_.wait_taken();
    } else if (warp == multiplying_warp) {
      debug::role("multiply");
      mark_first(multiplier_role, Moment::started);
      meetings_.sync_barriers();
      multiply(meetings_.take());
    } else {
      debug::role("finish");
      mark_first(finisher_role, Moment::started);
      meetings_.sync_barriers();
      finish(meetings_.sync_allocated());
    }
    meetings_.give_back(warp == multiplying_warp);
  }

 private:
  using Tile = typename Tiles::Tile;
  using SlotCursor = Cursor<shape.stages>;
  using SumsCursor = Cursor<shape.sums>;
  static constexpr bool is_grouped = Tiles::is_made;
  static constexpr bool is_split = shape.split_groups > 1;
  using Split = typename SplitOf<shape, is_grouped>::Split;
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
    if constexpr (shape.profiled) {
      if (role == finisher_role ? launch::thread_index() == 0 : warp::lane() == 0) {
        mark(role, moment);
      }
    }
  }

  TH_DEVICE void init() const {
    if (warp::lane() == 0) {
      operation_.prefetch();
      ring_.init();
      if constexpr (is_split) {
        split().init();
      }
      fence::barrier_init();
    }
    warp::sync();
  }

  // --- tiles

  static TH_DEVICE Tiles tiles(const Operation& operation, Shared<u8> directory, ClusterPlace cluster, u32 member) {
    if constexpr (is_grouped) {
      return Tiles(operation.groups(), directory, cluster);
    } else {
      return Tiles(operation, cluster, member);
    }
  }

  /// Calls `work(index)` for each static tile of this cluster.
  template <class Work>
  TH_DEVICE void each_tile(const Work& work) const {
    for (auto walk = tiles_.walk(); tiles_.has(walk); walk.advance()) {
      work(walk.index());
      if constexpr (!shape.persistent) {
        break;
      }
    }
  }

  /// The steps of this block's part of the k range.
  TH_DEVICE u32 step_at(u32 half) const { return half * operation_.k_steps() / shape.split_groups; }
  TH_DEVICE u32 first_step() const { return step_at(place_.half); }
  TH_DEVICE u32 end_step() const { return step_at(place_.half + 1); }

  // --- loading

  TH_DEVICE bool is_loaded(u32 step) const {
    return shape.ablation != Ablation::products_only || step - first_step() < static_cast<u32>(shape.stages);
  }

  TH_DEVICE LoadSlot slot_at(u32 index) const { return {ring_.slot(index), ring_.full(index)}; }

  TH_DEVICE void load_slot(SlotCursor& at, const Tile& tile, u32 step) const {
    ring_.empty(at.slot).wait(Phase{at.phase.parity ^ 1U});
    if (warp::elect()) {
      if (is_loaded(step)) {
        ring_.announce(at.slot, operation_.slot_load_bytes(tile));
        const LoadSlot slot = slot_at(at.slot);
        operation_.load_weights(slot, tile, step, place_.member);
        operation_.load_tokens(slot, tile, step, place_.member);
      } else {
        ring_.announce_nothing(at.slot);
      }
    }
    warp::sync();
    at.advance();
  }

  /// The next tile is looked up when the first slot of this one has been asked for.
  TH_DEVICE void load_groups(u32 flags) const {
    SlotCursor at;
    const u32 tiles = tiles_.count();
    const u32 end = end_step();
    mark_first(loader_role, Moment::ready);
    Tile next = cluster_.index < tiles ? tiles_.find(cluster_.index) : Tile{};
    for (StridedTiles walk(cluster_, tiles); walk.is_there(); walk.advance()) {
      const Tile tile = next;
      load_slot(at, tile, first_step());
      if (walk.has_next()) {
        next = tiles_.find(walk.next());
      }
      if constexpr (Operation::inspects) {
        if (tile.column == 0) {
          flags |= operation_.inspect(tile);
        }
      }
      TH_NO_UNROLL
      for (u32 step = first_step() + 1; step < end; ++step) {
        load_slot(at, tile, step);
      }
    }
    if (warp::lane() == 0 && (Operation::inspects || launch::block_index().x == 0)) {
      operation_.report(flags);
    }
    mark_first(loader_role, Moment::finished);
  }

  TH_DEVICE void load_static() const {
    mark_first(loader_role, Moment::ready);
    SlotCursor at;
    bool earlier_grids_ended = false;
    each_tile([&](u32 index) {
      const Tile tile = tiles_.find(index);
      u32 step = first_step();
      if (!earlier_grids_ended) {
        step = load_ring_ahead(at, tile);
        earlier_grids_ended = true;
      }
      const u32 end = end_step();
      TH_NO_UNROLL
      for (; step < end; ++step) {
        load_slot(at, tile, step);
      }
    });
    mark_first(loader_role, Moment::finished);
  }

  /// Fills the ring with weights, waits for earlier grids, adds the tokens. Returns the step behind the last.
  TH_DEVICE u32 load_ring_ahead(SlotCursor& at, const Tile& tile) const {
    const u32 first = first_step();
    const u32 steps = end_step() - first;
    const u32 end = first + (steps < static_cast<u32>(shape.stages) ? steps : static_cast<u32>(shape.stages));
    if (warp::elect()) {
      mark(loader_role, Moment::first_slot);
      TH_NO_UNROLL
      for (u32 step = first; step < end; ++step) {
        ring_.announce(step - first, operation_.slot_load_bytes(tile));
        operation_.load_weights(slot_at(step - first), tile, step, place_.member);
      }
    }
    warp::sync();
    launch::wait_for_earlier_grids();
    if (warp::elect()) {
      TH_NO_UNROLL
      for (u32 step = first; step < end; ++step) {
        operation_.load_tokens(slot_at(step - first), tile, step, place_.member);
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
    if constexpr (is_grouped) {
      if (place_.member == 0) {
        multiply_groups(columns);
      }
    } else {
      if (place_.member == 0 && warp::elect()) {
        multiply_static(columns);
      }
      warp::sync();
    }
  }

  /// All lanes look a tile up, one issues its products.
  TH_DEVICE void multiply_groups(tensor_memory::Columns columns) const {
    SlotCursor at;
    SumsCursor sums;
    const u32 tiles = tiles_.count();
    const u32 steps = end_step() - first_step();
    mark_first(multiplier_role, Moment::ready);
    for (StridedTiles walk(cluster_, tiles); walk.is_there(); walk.advance()) {
      const u32 tile_width = tiles_.find(walk.index()).tile_width;
      if (warp::elect()) {
        multiply_tile(columns, sums, at, tile_width, steps);
      }
      warp::sync();
      at.skip(steps);
      sums.advance();
    }
    mark_first(multiplier_role, Moment::finished);
  }

  TH_DEVICE void multiply_tile(tensor_memory::Columns columns, const SumsCursor& sums, SlotCursor at, u32 tile_width,
                               u32 steps) const {
    ring_.await(ring_.sums_empty(sums.slot), Phase{sums.phase.parity ^ 1U});
    TH_NO_UNROLL
    for (u32 step = 0; step < steps; ++step) {
      ring_.await(ring_.full(at.slot), at.phase);
      tensor_memory::after_barrier();
      operation_.multiply(ring_.slot(at.slot), columns.plus(sums.slot * shape.sum_columns),
                          columns.plus(static_cast<u32>(set_offset(shape, 0)) + at.slot * shape.scale_columns),
                          tile_width, step == 0);
      ring_.commit(ring_.empty(at.slot));
      at.advance();
    }
    ring_.commit(ring_.sums_full(sums.slot));
  }

  TH_DEVICE void multiply_static(tensor_memory::Columns columns) const {
    mark(multiplier_role, Moment::ready);
    SlotCursor at;
    SumsCursor sums;
    const u32 steps = end_step() - first_step();
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
                              columns.plus(static_cast<u32>(set_offset(shape, 0)) + at.slot * shape.scale_columns), 0,
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

  TH_DEVICE TensorSums await_sums(tensor_memory::Columns columns, const SumsCursor& at) const {
    ring_.sums_full(at.slot).wait(at.phase);
    tensor_memory::after_barrier();
    mark_first(finisher_role, Moment::drained);
    return TensorSums(columns.plus(at.slot * shape.sum_columns));
  }

  TH_DEVICE void finish(tensor_memory::Columns columns) const {
    if constexpr (is_grouped) {
      finish_groups(columns);
    } else {
      finish_static(columns);
    }
  }

  TH_DEVICE void finish_static(tensor_memory::Columns columns) const {
    launch::wait_for_earlier_grids();
    mark_first(finisher_role, Moment::ready);
    SumsCursor at;
    each_tile([&](u32 index) {
      const Tile tile = tiles_.find(index);
      const auto ahead = operation_.ahead(tile, place_, meetings_.scratch());
      finish_tile(await_sums(columns, at), tile, ahead);
      if constexpr (shape.persistent) {
        ring_.give_back(at.slot);
      }
      at.advance();
      mark_first(finisher_role, Moment::finished);
    });
  }

  template <class Ahead>
  TH_DEVICE void finish_tile(TensorSums sums, const Tile& tile, const Ahead& ahead) const {
    if constexpr (is_split) {
      const SplitSums<shape> merged = split().run(sums);
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
  template <class Sums, class Ahead>
  TH_DEVICE void finish_ablated(const Sums& sums, const Tile& tile, const Ahead& ahead) const {
    if (shape.ablation != Ablation::no_epilogue || tiles_.count() == 0xFFFFFFFFU) {
      operation_.finish(sums, tile, 0, place_, staging(), ahead);
    }
    if constexpr (shape.ablation == Ablation::epilogue_twice) {
      named_barrier::sync(drained_barrier, finishing_threads);
      operation_.finish(sums, tile, 0, place_, staging(), ahead);
    }
  }

  /// Earlier grids have ended: the loaders waited for them before the meeting that these warps come from.
  TH_DEVICE void finish_groups(tensor_memory::Columns columns) const {
    const u32 tiles = tiles_.count();
    mark_first(finisher_role, Moment::ready);
    SumsCursor at;
    Phase phase{};
    for (StridedTiles walk(cluster_, tiles); walk.is_there(); walk.advance()) {
      const Tile tile = tiles_.find(walk.index());
      const auto ahead = operation_.ahead(tile, place_, meetings_.scratch());
      const TensorSums sums = await_sums(columns, at);
      if constexpr (is_split) {
        finish_half(sums, at.slot, tile, ahead, phase);
        phase.flip();
      } else {
        finish_chunks(sums, tile, ahead);
        ring_.give_back(at.slot);
      }
      at.advance();
      mark_first(finisher_role, Moment::finished);
    }
  }

  template <int columns>
  TH_DEVICE auto chunk(const TensorSums& sums, u32 first) const {
    return load_chunks<Operation::accumulators, columns>(sums, Operation::tile_widths.most, first);
  }

  template <class Ahead>
  TH_DEVICE void finish_chunks(const TensorSums& sums, const Tile& tile, const Ahead& ahead) const {
    constexpr u32 at_once = 32;
    TH_NO_UNROLL
    for (u32 first = 0; first < tile.rows; first += at_once) {
      if (tile.tile_width - first >= at_once) {
        operation_.finish(chunk<at_once>(sums, first), tile, first, place_, staging(), ahead);
      } else {
        operation_.finish(chunk<Operation::tile_widths.least>(sums, first), tile, first, place_, staging(), ahead);
      }
    }
  }

  /// This block finishes one half of the tile's columns, with what the other one has summed of them.
  template <class Ahead>
  TH_DEVICE void finish_half(const TensorSums& sums, u32 accumulator, const Tile& tile, const Ahead& ahead,
                             Phase phase) const {
    with_tile_width<Operation::tile_widths>(tile.tile_width, [&](auto tile_width) {
      constexpr int columns = static_cast<int>(decltype(tile_width)::columns);
      const auto partial = chunk<columns>(sums, 0);
      ring_.give_back(accumulator);
      const auto added = split().add_up(partial, phase);
      if (const u32 first = place_.half * (columns / 2); first < tile.rows) {
        operation_.finish(added, tile, first, place_, staging(), ahead);
      }
    });
  }

  TH_DEVICE Split split() const {
    return {memory_.offset_bytes(is_grouped ? split_offset(shape) : 0), ring_.merge(), place_.half,
            rank_ ^ group_blocks(shape)};
  }

  const Operation& operation_;
  Shared<u8> memory_;
  u32 rank_;
  BlockPlace place_;
  ClusterPlace cluster_;  ///< whose tiles these are
  TensorRing<shape> ring_;
  ClusterSync<shape> meetings_;
  Tiles tiles_;
};

template <class Operation>
TH_DEVICE void run_tcgen05(const Operation& operation) {
  Tcgen05Skeleton<Operation, StaticTiles<Operation>>(operation).run();
}
template <TakesGroups Operation>
TH_DEVICE void run_tcgen05(const Operation& operation) {
  Tcgen05Skeleton<Operation, GroupTiles<Operation::tile_widths>>(operation).run();
}

}  // namespace thresher::pipeline
