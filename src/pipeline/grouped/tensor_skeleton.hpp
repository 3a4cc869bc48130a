#pragma once
/// The body of a grouped kernel whose sums lie in tensor memory: clusters that stay take tile after tile of groups
/// whose rows only the device knows. As pipeline/tensor_skeleton.hpp, with two sets of accumulators, each tile with
/// products of the least width that holds its rows; in each block the loader makes the directory before it loads. Where
/// few tiles of few columns leave multiprocessors idle, two groups of a cluster take the same tiles, halve their k
/// range and add up.
#include "machine/cluster.hpp"
#include "machine/debug.hpp"
#include "machine/fence.hpp"
#include "machine/launch.hpp"
#include "machine/warp.hpp"
#include "pipeline/grouped/directory.hpp"
#include "pipeline/grouped/rung.hpp"
#include "pipeline/grouped/tensor_chunks.hpp"
#include "pipeline/grouped/tensor_groups.hpp"
#include "pipeline/grouped/tensor_split.hpp"
#include "pipeline/tensor_meetings.hpp"
#include "pipeline/tensor_ring.hpp"
#include "pipeline/tensor_sums.hpp"
#include "pipeline/tile_source.hpp"
#include "pipeline/timeline.hpp"

namespace thresher::pipeline {

/// The requirements of the skeleton on a grouped operation. One thread of the loader calls prefetch first of all, and
/// for each slot `load`, whose copies bring slot_load_bytes(tile) to each block of the group. The loader's lanes
/// together call `inspect`, where the operation `inspects`, for one tile of each stretch of rows; it gives flags. One
/// thread `report`s them at the end with what was wrong with the bounds: of every block where the operation inspects,
/// else of the first. One thread of the group issues a slot's products by `multiply`; `rung` are their columns; a
/// tile's sums are `accumulators`, each of the widest tile's columns behind the one before. The finishing warps call
/// `ahead` before a tile's sums are there, and `finish` for all of its columns, some at a time: those from `first` on.
/// `member` is the block's place in its group.
template <class Operation>
concept GroupedTensors =
    requires(const Operation& operation, const GroupTile& tile, const LoadSlot& slot, u32 at, Shared<u8> memory,
             tensor_memory::Columns columns, bool first, const TensorChunks<Operation::accumulators, 16>& sums) {
      requires Same<decltype(Operation::shape), const TensorShape>;
      requires Same<decltype(Operation::tile_widths), const TileWidths>;
      requires Same<decltype(Operation::inspects), const bool>;
      requires Same<decltype(Operation::accumulators), const int>;
      { operation.groups() } -> Same<const Groups&>;
      { operation.k_steps() } -> Same<u32>;
      { operation.prefetch() } -> Same<void>;
      { operation.inspect(tile) } -> Same<u32>;
      { operation.report(at) } -> Same<void>;
      { operation.slot_load_bytes(tile) } -> Same<u32>;
      { operation.load(slot, tile, at, at) } -> Same<void>;
      { operation.multiply(memory, columns, columns, at, first) } -> Same<void>;
      { operation.finish(sums, tile, at, at, memory, operation.ahead(tile, at)) } -> Same<void>;
      { operation.profile() } -> Same<Global<u64>>;
    };

template <GroupedTensors Operation>
class GroupedTensorSkeleton {
 public:
  static constexpr TensorShape shape = Operation::shape;
  static_assert(shape.persistent && shape.sums == 2 && shape.ablation == Ablation::none);
  static_assert(shape.sum_columns == Operation::accumulators * static_cast<int>(Operation::tile_widths.most));
  static_assert(shape.split_groups == 1 || Operation::tile_widths.most <= max_split_columns,
                "the sums of a tile whose k range is split are held in registers");
  static_assert(used_columns(shape) <= static_cast<int>(tensor_memory::all_columns),
                "the sums and a set of scales for each slot take more than the 512 columns of tensor memory");
  static_assert(shape.slot_bytes % 1024 == 0, "slots start at swizzle atoms: their bytes are a multiple of 1024");

  TH_DEVICE explicit GroupedTensorSkeleton(const Operation& operation)
      : operation_(operation),
        memory_(launch::shared_memory()),
        rank_(cluster_blocks(shape) > 1 ? cluster::rank() : 0),
        member_(rank_ % group_blocks(shape)),
        half_(rank_ / group_blocks(shape)),
        cluster_(launch::block_index().x / cluster_blocks(shape)),
        clusters_(launch::block_count().x / cluster_blocks(shape)),
        ring_(memory_, rank_),
        meetings_(memory_),
        directory_(operation.groups(), memory_.offset_bytes(directory_offset(shape))) {}

  TH_DEVICE void run() const {
    const u32 warp = warp::index();
    launch::release_dependents();
    if (warp == loading_warp) {
      debug::role("load");
      mark_first(loader_role, Moment::started);
      init();
      meetings_.sync_barriers();
      launch::wait_for_earlier_grids();
      const u32 flags = describe();
      meetings_.arrive_taken();
      load(flags);
      meetings_.wait_taken();
    } else if (warp == multiplying_warp) {
      debug::role("multiply");
      mark_first(multiplier_role, Moment::started);
      meetings_.sync_barriers();
      const tensor_memory::Columns columns = meetings_.take();
      if (member_ == 0) {
        multiply(columns);
      }
    } else {
      debug::role("finish");
      mark_first(finisher_role, Moment::started);
      meetings_.sync_barriers();
      finish(meetings_.sync_allocated());
    }
    meetings_.give_back(warp == multiplying_warp);
  }

 private:
  static constexpr u32 finisher_role = 0;
  static constexpr u32 multiplier_role = 1;
  static constexpr u32 loader_role = 2;
  static constexpr bool is_split = shape.split_groups > 1;

  /// All threads of a role call it: the first of its first warp marks.
  TH_DEVICE void mark_first(u32 role, Moment moment) const {
    if constexpr (shape.profiled) {
      if (role == finisher_role ? launch::thread_index() == 0 : warp::lane() == 0) {
        Timeline<profile_shape(shape)>(operation_.profile()).mark(role, moment);
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

  TH_DEVICE u32 describe() const {
    debug::name_shared(memory_.offset_bytes(directory_offset(shape)), directory_bytes(operation_.groups().count),
                       "directory");
    const u32 flags = directory_.make();
    warp::sync();
    return flags;
  }

  /// The steps of this block's part of the k range: from step_at(half_) to step_at(half_ + 1).
  TH_DEVICE u32 step_at(u32 half) const { return half * operation_.k_steps() / shape.split_groups; }

  // --- loading

  using SlotCursor = Cursor<shape.stages>;

  /// The next tile is looked up when the first slot of this one has been asked for.
  TH_DEVICE void load(u32 flags) const {
    SlotCursor at;
    const u32 tiles = directory_.tiles();
    const u32 end = step_at(half_ + 1);
    mark_first(loader_role, Moment::ready);
    GroupTile next = cluster_ < tiles ? directory_.find(cluster_) : GroupTile{};
    for (StridedTiles deal({cluster_, clusters_}, tiles); deal.index() < tiles; deal.advance()) {
      const GroupTile tile = next;
      load_slot(at, tile, step_at(half_));
      if (deal.next() < tiles) {
        next = directory_.find(deal.next());
      }
      if constexpr (Operation::inspects) {
        if (tile.column == 0) {
          flags |= operation_.inspect(tile);
        }
      }
      TH_NO_UNROLL
      for (u32 step = step_at(half_) + 1; step < end; ++step) {
        load_slot(at, tile, step);
      }
    }
    if (warp::lane() == 0 && (Operation::inspects || launch::block_index().x == 0)) {
      operation_.report(flags);
    }
    mark_first(loader_role, Moment::finished);
  }

  TH_DEVICE void load_slot(SlotCursor& at, const GroupTile& tile, u32 step) const {
    ring_.empty(at.slot).wait(Phase{at.phase.parity ^ 1U});
    if (warp::elect()) {
      ring_.announce(at.slot, operation_.slot_load_bytes(tile));
      operation_.load({ring_.slot(at.slot), ring_.full(at.slot)}, tile, step, member_);
    }
    warp::sync();
    at.advance();
  }

  // --- multiplying

  using SumsCursor = Cursor<shape.sums>;

  /// All lanes look a tile up, one issues its products.
  TH_DEVICE void multiply(tensor_memory::Columns columns) const {
    SlotCursor at;
    SumsCursor sums;
    const u32 tiles = directory_.tiles();
    const u32 steps = step_at(half_ + 1) - step_at(half_);
    mark_first(multiplier_role, Moment::ready);
    for (StridedTiles deal({cluster_, clusters_}, tiles); deal.index() < tiles; deal.advance()) {
      const u32 tile_width = directory_.find(deal.index()).tile_width;
      if (warp::elect()) {
        multiply_tile(columns, at, sums, tile_width, steps);
      }
      warp::sync();
      at.skip(steps);
      sums.advance();
    }
    mark_first(multiplier_role, Moment::finished);
  }

  TH_DEVICE void multiply_tile(tensor_memory::Columns columns, SlotCursor at, SumsCursor sums, u32 tile_width,
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

  // --- finishing

  /// Earlier grids have ended: the loaders waited for them before the meeting that these warps come from.
  TH_DEVICE void finish(tensor_memory::Columns columns) const {
    SumsCursor at;
    Phase phase{};
    const u32 tiles = directory_.tiles();
    mark_first(finisher_role, Moment::ready);
    for (StridedTiles deal({cluster_, clusters_}, tiles); deal.index() < tiles; deal.advance()) {
      const GroupTile tile = directory_.find(deal.index());
      const auto ahead = operation_.ahead(tile, member_);
      ring_.sums_full(at.slot).wait(at.phase);
      tensor_memory::after_barrier();
      mark_first(finisher_role, Moment::drained);
      const TensorSums sums(columns.plus(at.slot * shape.sum_columns));
      if constexpr (is_split) {
        finish_half(sums, at.slot, tile, ahead, phase);
        phase.flip();
      } else {
        finish_tile(sums, tile, ahead);
        ring_.give_back(at.slot);
      }
      at.advance();
      mark_first(finisher_role, Moment::finished);
    }
  }

  TH_DEVICE Shared<u8> staging() const { return memory_.offset_bytes(staging_offset(shape)); }

  template <int columns>
  TH_DEVICE auto chunk(const TensorSums& sums, u32 first) const {
    return load_chunks<Operation::accumulators, columns>(sums, Operation::tile_widths.most, first);
  }

  template <class Ahead>
  TH_DEVICE void finish_tile(const TensorSums& sums, const GroupTile& tile, const Ahead& ahead) const {
    constexpr u32 at_once = 32;
    TH_NO_UNROLL
    for (u32 first = 0; first < tile.rows; first += at_once) {
      if (tile.tile_width - first >= at_once) {
        operation_.finish(chunk<at_once>(sums, first), tile, first, member_, staging(), ahead);
      } else {
        operation_.finish(chunk<Operation::tile_widths.least>(sums, first), tile, first, member_, staging(), ahead);
      }
    }
  }

  /// This block finishes one half of the tile's columns, with what the other one has summed of them.
  template <class Ahead>
  TH_DEVICE void finish_half(const TensorSums& sums, u32 accumulator, const GroupTile& tile, const Ahead& ahead,
                             Phase phase) const {
    with_tile_width<Operation::tile_widths>(tile.tile_width, [&](auto tile_width) {
      constexpr int columns = static_cast<int>(decltype(tile_width)::columns);
      const auto partial = chunk<columns>(sums, 0);
      ring_.give_back(accumulator);
      const auto added = split().add_up(partial, phase);
      if (const u32 first = half_ * (columns / 2); first < tile.rows) {
        operation_.finish(added, tile, first, member_, staging(), ahead);
      }
    });
  }

  TH_DEVICE TensorSplit split() const {
    return {memory_.offset_bytes(split_offset(shape)), ring_.merge(), half_, rank_ ^ group_blocks(shape)};
  }

  const Operation& operation_;
  Shared<u8> memory_;
  u32 rank_;
  u32 member_;   ///< of the group that shares a product; 0 leads it
  u32 half_;     ///< which part of the k range
  u32 cluster_;  ///< whose tiles these are
  u32 clusters_;
  TensorRing<shape> ring_;
  ClusterSync<shape> meetings_;
  Directory<Operation::tile_widths> directory_;
};

template <GroupedTensors Operation>
TH_DEVICE void run_grouped_tensor(const Operation& operation) {
  GroupedTensorSkeleton<Operation>(operation).run();
}

}  // namespace thresher::pipeline
