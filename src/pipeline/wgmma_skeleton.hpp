#pragma once
/// The body of every warp-specialised kernel whose sums lie in registers. One producer warp fills the ring, and
/// consumer warpgroups empty it, tile after tile of a source (pipeline/tile_source.hpp). The operation loads,
/// multiplies and writes (pipeline/operation.hpp). A cluster that splits K has at most one tile.
///
/// Consumer warpgroups take all of them each tile, or alternate, each with tiles of its own. Where the rows of tiles
/// are groups', each tile has products of the least width that holds its rows.
#include "machine/cluster.hpp"
#include "machine/debug.hpp"
#include "machine/fence.hpp"
#include "machine/launch.hpp"
#include "machine/named_barrier.hpp"
#include "machine/registers.hpp"
#include "pipeline/ablation.hpp"
#include "pipeline/merge.hpp"
#include "pipeline/operation.hpp"
#include "pipeline/ordered_barrier.hpp"
#include "pipeline/products.hpp"
#include "pipeline/promoted_products.hpp"
#include "pipeline/register_operand.hpp"
#include "pipeline/ring.hpp"
#include "pipeline/tile_source.hpp"
#include "pipeline/timeline.hpp"

namespace thresher::pipeline {

/// The part of a group's operation for its widest tiles, or the operation itself where tiles are all alike, and the
/// equal ranges of its sums that are merged.
template <class Operation>
struct WidestPartOf {
  using Type = Operation;
  static constexpr int merge_pieces = Operation::merge_pieces;
};
template <Grouped Operation>
struct WidestPartOf<Operation> {
  using Type = typename Operation::template Part<Operation::tile_widths.most>;
  static constexpr int merge_pieces = 1;
};

template <class Operation, TileSource Tiles>
class WgmmaSkeleton {
 public:
  static constexpr Shape shape = Operation::shape;
  static constexpr Hooks hooks = CheckedHooks<Operation>::hooks;
  static constexpr bool is_ping_pong = shape.reading == Reading::ping_pong;
  /// Tiles have parts of several widths, one for each consumer warpgroup.
  static constexpr bool has_parts = Grouped<Operation>;
  using WidestPart = typename WidestPartOf<Operation>::Type;
  using Engine = typename Operation::Engine;
  using Tile = typename Tiles::Tile;
  static_assert(!Tiles::is_made || (shape.persistent ? 1 : shape.split_blocks) == cluster_blocks(shape));
  static_assert(!has_parts || (shape.passes == 1 && shape.ablation == Ablation::none));
  static_assert(!hooks.promotes || (!hooks.makes_operand && shape.passes == 1));

  static_assert(!has_parts || shape.persistent || (hooks.load_constant && !hooks.deals_rows),
                "a block with one tile loads constants first, and all its warpgroups finish the tile");

  TH_DEVICE explicit WgmmaSkeleton(const Operation& operation)
      : operation_(operation),
        memory_(launch::shared_memory()),
        ring_{memory_, barriers(), barriers().offset(shape.stages)},
        rank_(cluster_blocks(shape) > 1 ? cluster::rank() : 0),
        member_(rank_ % shape.multicast_blocks),
        half_(rank_ / shape.multicast_blocks),
        tiles_(tiles()) {}

  TH_DEVICE void run() const {
    const u32 warpgroup = warp::group_index();
    if constexpr (shape.release_early && !Tiles::is_made) {
      launch::release_dependents();
    }
    if (launch::thread_index() % 128 == 0) {
      mark(warpgroup, Moment::started);
    }
    if (warpgroup == shape.math_warpgroups) {
      const bool loader = warp::index() == 4 * shape.math_warpgroups;
      u32 flags = 0;
      if (loader) {
        debug::role("load");
        init();
        if constexpr (Tiles::is_made) {
          await_bounds();
          flags = tiles_.make();
          expect_parts();
        }
      }
      publish();
      if constexpr (shape.loader_registers > 0) {
        registers::decrease<shape.loader_registers>();
      }
      if (loader) {
        if constexpr (Tiles::is_made) {
          load_group_tiles(flags);
        } else {
          load_static_tiles();
        }
      }
      meet_cluster();
    } else {
      debug::role("math", warpgroup);
      await();
      if constexpr (shape.math_registers > 0) {
        registers::increase<shape.math_registers>();
      }
      if constexpr (hooks.prepare) {
        prepare();
      }
      launch::wait_for_earlier_grids();
      math(warpgroup);
    }
    if constexpr (cluster_blocks(shape) > 1) {
      // No block ends while another may still write into it or arrive on its barriers.
      cluster::arrive_relaxed();
      cluster::wait();
    }
  }

 private:
  TH_DEVICE Tiles tiles() const {
    const ClusterPlace cluster{launch::block_index().x / cluster_blocks(shape),
                               launch::block_count().x / cluster_blocks(shape)};
    if constexpr (Tiles::is_made) {
      return {operation_.groups(), memory_.offset_bytes(directory_offset(shape)), cluster};
    } else if constexpr (has_parts) {
      return {operation_.groups(), cluster};
    } else {
      return {operation_, cluster, member_};
    }
  }

  TH_DEVICE void mark(u32 role, Moment moment) const {
    if constexpr (shape.profiled) {
      if (role == shape.math_warpgroups || launch::thread_index() % 128 == 0) {
        Timeline<shape>(operation_.profile()).mark(role, moment);
      }
    }
  }
  /// The producer warp calls it.
  TH_DEVICE void mark_load(Moment moment) const {
    if (warp::lane() == 0) {
      mark(shape.math_warpgroups, moment);
    }
  }

  TH_DEVICE Barrier turn_barriers() const { return barriers().offset(2 * shape.stages + 2); }
  TH_DEVICE Barrier barriers() const { return {memory_.offset_bytes(barrier_offset(shape)).address}; }

  TH_DEVICE auto merge() const {
    return Merge<shape, typename WidestPart::Sums, WidestPartOf<Operation>::merge_pieces>(
        memory_, barriers().offset(2 * shape.stages), half_, member_);
  }

  /// Barriers are made by the producer warp, which needs them first.
  TH_DEVICE void init() const {
    if (warp::lane() == 0) {
      operation_.prefetch();
      ring_.init();
      if constexpr (shape.split_blocks > 1) {
        merge().init();
        if constexpr (!Tiles::is_made) {
          merge().expect();
        }
      }
      if constexpr (is_ping_pong) {
        OrderedBarrier<shape>::init(turn_barriers());
      }
      fence::barrier_init();
    }
    warp::sync();
  }

  /// Only the directory tells whether there is a tile.
  TH_DEVICE void expect_parts() const {
    if constexpr (shape.split_blocks > 1) {
      if (tiles_.has(tiles_.walk()) && warp::lane() == 0) {
        merge().expect();
      }
    }
  }

  static constexpr u32 drained_barrier = 14;
  static constexpr u32 made_barrier = 15;

  /// The producer warpgroup's warps make the barriers and the tiles' directory. Only copies into another block's slots
  /// must wait for that block's barriers.
  TH_DEVICE void publish() const {
    if constexpr (cluster_blocks(shape) > 1) {
      cluster::arrive_relaxed();
    }
    if constexpr (shape.multicast_blocks > 1) {
      cluster::wait();
    } else {
      named_barrier::arrive(made_barrier, threads(shape));
    }
  }

  /// The consumer warpgroups: wait until they are.
  TH_DEVICE void await() const {
    if constexpr (cluster_blocks(shape) > 1) {
      cluster::arrive_relaxed();
    }
    if constexpr (shape.multicast_blocks > 1) {
      cluster::wait();
    } else {
      named_barrier::sync(made_barrier, threads(shape));
    }
  }

  /// Writes of the operation itself into the slots are visible to every consumer warpgroup's products.
  TH_DEVICE void prepare() const {
    if (operation_.prepare(memory_, launch::thread_index())) {
      fence::async_shared();
      named_barrier::sync(drained_barrier, math_threads(shape));
    }
  }

  /// Comes behind the loads, and before sums are merged or where there is no tile: the other blocks of the cluster have
  /// made their barriers too.
  TH_DEVICE void meet_cluster() const {
    if constexpr (cluster_blocks(shape) > 1 && shape.multicast_blocks == 1) {
      cluster::wait();
    }
  }

  /// This block's part of the k steps, for each half a multiple of slots_together when all of them are.
  static constexpr u32 slots_together = [] {
    if constexpr (hooks.makes_operand && (!Tiles::is_made || shape.split_blocks > 1)) {
      return static_cast<u32>(WidestPart::slots_together);
    } else {
      return 1U;
    }
  }();
  TH_DEVICE u32 step_at(u32 half) const {
    return half * (operation_.k_steps() / slots_together) / shape.split_blocks * slots_together;
  }
  TH_DEVICE u32 first_step() const { return step_at(half_); }
  TH_DEVICE u32 end_step() const { return step_at(half_ + 1); }

  // --- loading

  /// Settled bounds are there although earlier grids may still run. They come from beyond the L1 cache, which may have
  /// those of an earlier launch.
  TH_DEVICE void await_bounds() const {
    const Groups& groups = operation_.groups();
    if (groups.settled != 0) {
      (void)groups.bounds.template as<u32>().load_acquire();
    } else {
      await_earlier_grids();
    }
  }

  /// Where tiles are made, the next grid starts no sooner: what earlier ones wrote is settled for it.
  TH_DEVICE void await_earlier_grids() const {
    launch::wait_for_earlier_grids();
    if constexpr (shape.release_early && Tiles::is_made) {
      launch::release_dependents();
    }
  }

  TH_DEVICE void load_static_tiles() const {
    if constexpr (!hooks.load_constant) {
      launch::wait_for_earlier_grids();
    }
    RingWriter<shape> writer(ring_);
    mark_load(Moment::ready);
    for (auto own = tiles_.walk(); tiles_.has(own); own.advance()) {
      const Tile tile = tiles_.find(own.index());
      if constexpr (hooks.load_constant) {
        load_constants_first(writer, tile);
      } else {
        load_pass<0>(writer, tile);
      }
      if constexpr (shape.passes > 1) {
        load_pass<1>(writer, tile);
      }
      if constexpr (!shape.persistent) {
        break;
      }
    }
    mark_load(Moment::finished);
  }

  /// The next tile is looked up when the first slot of this one has been asked for. Behind settled bounds, the weights
  /// of the first tile come before earlier grids have ended.
  TH_DEVICE void load_group_tiles(u32 flags) const {
    RingWriter<shape> writer(ring_);
    mark_load(Moment::ready);
    auto own = tiles_.walk();
    const u32 first = first_step();
    const u32 end = end_step();
    Tile next = tiles_.has(own) ? tiles_.find(own.index()) : Tile{};
    u32 loaded =
        operation_.groups().settled != 0 ? fill_ring(writer, next, first, tiles_.has(own) ? end : first) : first;
    for (; tiles_.has(own); own.advance()) {
      const Tile tile = next;
      if (loaded == first) {
        load_next<0>(writer, tile, loaded++, true);
      }
      if (own.has_next()) {
        next = tiles_.find(own.next());
      }
      if constexpr (hooks.inspects) {
        if (tile.column == 0) {
          flags |= operation_.inspect(tile);
        }
      }
      TH_NO_UNROLL
      for (u32 step = loaded; step < end; ++step) {
        load_next<0>(writer, tile, step, false);
      }
      loaded = first;
      if constexpr (!shape.persistent) {
        break;
      }
    }
    if (warp::lane() == 0 && (hooks.inspects || (tiles_.is_first() && rank_ == 0))) {
      operation_.report(flags);
    }
    mark_load(Moment::finished);
  }

  template <int pass>
  TH_DEVICE void load_pass(RingWriter<shape>& writer, const Tile& tile) const {
    const u32 first = first_step();
    const u32 end = end_step();
    TH_NO_UNROLL
    for (u32 step = first; step < end; ++step) {
      if (Ablated<shape>::loads(pass * (end - first) + step - first)) {
        load_next<pass>(writer, tile, step, step == first);
      } else {
        Ablated<shape>::pretend_full(writer.acquire());
        writer.advance();
      }
    }
  }

  TH_DEVICE u32 slot_load_bytes(const Tile& tile) const {
    if constexpr (has_parts) {
      return operation_.slot_load_bytes(tile);
    } else {
      return operation_.slot_load_bytes;
    }
  }

  template <int pass>
  TH_DEVICE void load_next(RingWriter<shape>& writer, const Tile& tile, u32 step, bool first) const {
    const LoadSlot slot = writer.acquire();
    if (warp::elect()) {
      if (first) {
        mark(shape.math_warpgroups, Moment::first_slot);
      }
      slot.full.arrive_expect_bytes(slot_load_bytes(tile));
      if constexpr (Tiles::is_made) {
        operation_.load(slot, tile, step);
      } else {
        operation_.template load<pass>(slot, tile, step, member_);
      }
    }
    warp::sync();
    writer.advance();
  }

  TH_DEVICE void load_constants(RingWriter<shape>& writer, const Tile& tile, u32 step) const {
    const LoadSlot slot = writer.acquire();
    if (warp::elect()) {
      slot.full.arrive_expect_bytes(slot_load_bytes(tile));
      operation_.load_constant(slot, tile, step);
    }
    warp::sync();
  }
  TH_DEVICE void load_fresh(RingWriter<shape>& writer, const Tile& tile, u32 step) const {
    const LoadSlot slot = writer.acquire();
    if (warp::elect()) {
      operation_.load_fresh(slot, tile, step);
    }
    warp::sync();
    writer.advance();
  }

  /// Fills the ring with the constants of steps from `first` on, waits for earlier grids, and adds the rest. Returns
  /// the step behind them, at most `end`.
  TH_DEVICE u32 fill_ring(RingWriter<shape>& writer, const Tile& tile, u32 first, u32 end) const {
    const u32 ring_end = end - first < static_cast<u32>(shape.stages) ? end : first + shape.stages;
    RingWriter<shape> ahead = writer;
    TH_NO_UNROLL
    for (u32 step = first; step < ring_end; ++step) {
      load_constants(ahead, tile, step);
      ahead.advance();
    }
    await_earlier_grids();
    TH_NO_UNROLL
    for (u32 step = first; step < ring_end; ++step) {
      load_fresh(writer, tile, step);
    }
    return ring_end;
  }

  /// Fills the ring, constants first, and goes on slot by slot. A block has one tile.
  TH_DEVICE void load_constants_first(RingWriter<shape>& writer, const Tile& tile) const {
    static_assert(!shape.persistent && shape.passes == 1);
    const u32 first = first_step();
    const u32 end = end_step();
    TH_NO_UNROLL
    for (u32 step = fill_ring(writer, tile, first, end); step < end; ++step) {
      if (Ablated<shape>::loads(step - first)) {
        load_constants(writer, tile, step);
        load_fresh(writer, tile, step);
      } else {
        Ablated<shape>::pretend_full(writer.acquire());
        writer.advance();
      }
    }
  }

  // --- multiplying

  TH_DEVICE void math(u32 warpgroup) const {
    RingReader<shape> reader(ring_, half_ * shape.multicast_blocks);
    OrderedBarrier<shape> turns(turn_barriers(), warpgroup);
    const u32 steps = (end_step() - first_step()) * shape.passes;
    u32 turn = 0;
    mark(warpgroup, Moment::ready);
    auto own = tiles_.walk();
    if constexpr (Tiles::is_made && !shape.persistent) {
      if (!tiles_.has(own)) {
        meet_cluster();
      }
    }
    for (; tiles_.has(own); own.advance()) {
      bool is_mine = true;
      if constexpr (is_ping_pong) {
        is_mine = turn == warpgroup;
        turn = turn + 1 == shape.math_warpgroups ? 0 : turn + 1;
      }
      if (is_mine) {
        compute_tile(reader, turns, tiles_.find(own.index()), warpgroup);
      } else {
        // Groups' steps are counted anew: kept, they would take a register from the sums.
        reader.skip(has_parts ? operation_.k_steps() : steps);
      }
      if constexpr (!shape.persistent) {
        break;
      }
    }
    if constexpr (!has_parts) {
      operation_.drain();
    }
  }

  /// With the warpgroup's part of the tile: the operation itself where tiles are all alike.
  TH_DEVICE void compute_tile(RingReader<shape>& reader, OrderedBarrier<shape>& turns, const Tile& tile,
                              u32 warpgroup) const {
    if constexpr (has_parts) {
      with_tile_width<Operation::tile_widths>(tile.tile_width, [&](auto tile_width) {
        compute(reader, turns, tile, warpgroup,
                typename Operation::template Part<decltype(tile_width)::columns>(operation_, warpgroup));
      });
    } else {
      compute(reader, turns, tile, warpgroup, operation_);
    }
  }

  template <class Part>
  TH_DEVICE void compute(RingReader<shape>& reader, OrderedBarrier<shape>& turns, const Tile& tile, u32 warpgroup,
                         const Part& part) const {
    if constexpr (hooks.deals_rows) {
      if (!part.has_rows(tile)) {
        pass_over(reader);
        return;
      }
    }
    const auto ahead = look_ahead(tile, part, warpgroup);
    typename Part::Sums sums;
    sums.clear();
    sums.settle();
    if constexpr (is_ping_pong) {
      turns.wait();
    }
    if constexpr (Ablated<shape>::multiplies && hooks.makes_operand) {
      // Here, not in a function: there the compiler orders the halves of a split in another way.
      if (const u32 steps = end_step() - first_step(); has_parts || steps != 0) {
        RegisterOperand<Part>(part, reader, warpgroup).accumulate(sums, steps, [&] {
          mark(warpgroup, Moment::first_slot);
        });
      }
    } else {
      accumulate(reader, turns, sums, part, ahead, warpgroup);
    }
    sums.settle();
    mark(warpgroup, Moment::drained);
    if constexpr (!shape.release_early) {
      launch::release_dependents();
    }
    if constexpr (hooks.scales_sums) {
      part.scale(sums, ahead);
    }
    if constexpr (shape.split_blocks > 1) {
      meet_cluster();
      merge().run(sums);
    }
    mark(warpgroup, Moment::merged);
    if constexpr (shape.staging_bytes > 0 && !shape.persistent) {
      // Another warpgroup may still be reading the slots that this one's staging lies in.
      named_barrier::sync(drained_barrier, math_threads(shape));
    }
    const Shared<u8> staging = memory_.offset_bytes(staging_offset(shape) + warpgroup * shape.staging_bytes);
    Ablated<shape>::finish([&] { return tiles_.count(); },
                           [&] { finish(sums, tile, part, warpgroup, staging, ahead); });
    mark(warpgroup, Moment::finished);
  }

  /// The rows of a group's tile that this block finishes: those of the columns that it keeps of a split K.
  TH_DEVICE GroupTile own_rows(const GroupTile& tile) const {
    if constexpr (shape.split_blocks == 1) {
      return tile;
    } else {
      constexpr u32 kept = kept_columns(shape, Operation::tile_widths.most);
      const u32 first = half_ * kept;
      const u32 rest = first < tile.rows ? tile.rows - first : 0;
      return {tile.group, tile.column, tile.row + first, rest < kept ? rest : kept, kept, tile.row_tile};
    }
  }

  struct Nothing {};
  template <class Part>
  TH_DEVICE auto look_ahead(const Tile& tile, const Part& part, u32 warpgroup) const {
    if constexpr (has_parts) {
      return part.ahead(tile, own_rows(tile));
    } else if constexpr (hooks.ahead) {
      return part.ahead(tile, warpgroup, half_);
    } else {
      return Nothing{};
    }
  }
  template <class Part, class Ahead>
  TH_DEVICE void finish(typename Part::Sums& sums, const Tile& tile, const Part& part, u32 warpgroup,
                        Shared<u8> staging, const Ahead& ahead) const {
    if constexpr (has_parts) {
      if (const GroupTile own = own_rows(tile); shape.split_blocks == 1 || own.rows != 0) {
        part.finish(sums, own, staging, ahead);
      }
    } else if constexpr (hooks.ahead) {
      part.finish(sums, tile, warpgroup, half_, staging, ahead);
    } else {
      part.finish(sums, tile, warpgroup, half_, staging);
    }
  }

  /// Gives a tile's slots back as they come, each when every lane has seen it: one that had not might look for it a
  /// round later.
  TH_DEVICE void pass_over(RingReader<shape>& reader) const {
    TH_NO_UNROLL
    for (u32 step = 0; step < operation_.k_steps(); ++step) {
      reader.acquire();
      warp::sync();
      reader.release();
    }
  }

  /// The products of this block's k steps. A tile of a group has some; of halves of K one may have none.
  template <class Part, class Ahead>
  TH_DEVICE void accumulate(RingReader<shape>& reader, OrderedBarrier<shape>& turns, typename Part::Sums& sums,
                            const Part& part, const Ahead& ahead, u32 warpgroup) const {
    const u32 steps = end_step() - first_step();
    if constexpr (!Ablated<shape>::multiplies) {
      Ablated<shape>::release_all(reader, turns, steps * shape.passes);
    } else if constexpr (hooks.promotes) {
      PromotedProducts<Engine, shape, Part>(part, reader).accumulate(sums, first_step(), steps, ahead, [&] {
        pass_on(turns);
      });
    } else {
      // Closures as they stand: made once, or for each use, the compiler schedules each kind of tile best.
      using Products = SlotProducts<Engine, shape>;
      const Products products(reader);
      if constexpr (has_parts) {
        const auto multiply = [&](Shared<u8> slot) { part.multiply(sums, slot); };
        if constexpr (Products::in_flight > 0) {
          products.issue(multiply);
        }
        products.issue_and_release(Products::in_flight, steps, multiply);
      } else {
        if constexpr (Products::in_flight > 0) {
          if (steps != 0) {
            products.issue(multiply<0>(sums, part, warpgroup));
          }
        }
        mark(warpgroup, Moment::first_slot);
        products.issue_and_release(Products::in_flight, steps, multiply<0>(sums, part, warpgroup));
        if constexpr (shape.passes > 1) {
          products.issue_and_release(0, steps, multiply<1>(sums, part, warpgroup));
        }
      }
      pass_on(turns);
      products.finish(has_parts || steps != 0);
    }
  }

  TH_DEVICE void pass_on(const OrderedBarrier<shape>& turns) const {
    if constexpr (is_ping_pong) {
      turns.pass_on();
    }
  }

  template <int pass, class Part>
  TH_DEVICE auto multiply(typename Part::Sums& sums, const Part& part, u32 warpgroup) const {
    return [&sums, &part, warpgroup](Shared<u8> slot) { part.template math<pass>(sums, slot, warpgroup); };
  }

  const Operation& operation_;
  Shared<u8> memory_;
  Ring<shape> ring_;
  u32 rank_;
  u32 member_;  ///< among the blocks that fill each other's slots
  u32 half_;    ///< which part of the k range
  Tiles tiles_;
};

/// A kernel whose tiles the operation counts.
template <DualOperand Operation>
TH_DEVICE void run(const Operation& operation) {
  WgmmaSkeleton<Operation, StaticTiles<Operation>>(operation).run();
}

/// A kernel whose tiles are those of groups, or of one group whose rows the launch knows.
template <Grouped Operation>
TH_DEVICE void run_grouped(const Operation& operation) {
  if constexpr (Operation::knows_rows) {
    WgmmaSkeleton<Operation, OneGroupTiles<Operation::tile_widths>>(operation).run();
  } else {
    WgmmaSkeleton<Operation, GroupTiles<Operation::tile_widths>>(operation).run();
  }
}

}  // namespace thresher::pipeline
