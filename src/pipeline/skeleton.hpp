#pragma once
/// The body of every warp-specialised kernel: one loader warp fills the ring, math warpgroups empty it, tile after
/// tile. What they load, multiply and write is an operation's (pipeline/operation.hpp).
#include "machine/cluster.hpp"
#include "machine/debug.hpp"
#include "machine/fence.hpp"
#include "machine/launch.hpp"
#include "machine/named_barrier.hpp"
#include "machine/registers.hpp"
#include "pipeline/ablation.hpp"
#include "pipeline/merge.hpp"
#include "pipeline/operation.hpp"
#include "pipeline/products.hpp"
#include "pipeline/register_operand.hpp"
#include "pipeline/ring.hpp"
#include "pipeline/timeline.hpp"
#include "pipeline/turns.hpp"

namespace thresher::pipeline {

template <DualOperand Operation>
class Skeleton {
 public:
  static constexpr Shape shape = Operation::shape;
  static constexpr Hooks hooks = CheckedHooks<Operation>::hooks;
  using Engine = typename Operation::Engine;
  using Sums = typename Operation::Sums;

  TH_DEVICE explicit Skeleton(const Operation& operation)
      : operation_(operation),
        memory_(launch::shared_memory()),
        ring_{memory_, barriers(), barriers().offset(shape.stages)},
        rank_(cluster_blocks(shape) > 1 ? cluster::rank() : 0),
        member_(rank_ % shape.multicast_blocks),
        half_(rank_ / shape.multicast_blocks),
        group_(launch::block_index().x / cluster_blocks(shape)),
        groups_(launch::block_count().x / cluster_blocks(shape)) {}

  TH_DEVICE void run() const {
    const u32 warpgroup = warp::group_index();
    if constexpr (shape.release_early) {
      launch::release_dependents();
    }
    if (launch::thread_index() % 128 == 0) {
      mark(warpgroup, Moment::started);
    }
    if (warpgroup == shape.math_warpgroups) {
      const bool loader = warp::index() == 4 * shape.math_warpgroups;
      if (loader) {
        debug::role("load");
        init();
      }
      publish();
      if constexpr (shape.loader_registers > 0) {
        registers::decrease<shape.loader_registers>();
      }
      if (loader) {
        if constexpr (!hooks.load_constant) {
          launch::wait_for_earlier_grids();
        }
        load();
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
  TH_DEVICE void mark(u32 role, Moment moment) const {
    if constexpr (shape.profiled) {
      if (role == shape.math_warpgroups || launch::thread_index() % 128 == 0) {
        Timeline<shape>(operation_.profile()).mark(role, moment);
      }
    }
  }

  TH_DEVICE Barrier turn_barriers() const { return barriers().offset(2 * shape.stages + 2); }
  TH_DEVICE Barrier barriers() const { return {memory_.offset_bytes(barrier_offset(shape)).address}; }

  using TileMerge = Merge<shape, Sums, Operation::merge_pieces>;
  TH_DEVICE TileMerge merge() const {
    return {memory_, barriers().offset(2 * shape.stages), half_, rank_ ^ shape.multicast_blocks};
  }

  /// Barriers are made by the loader warp, which needs them first.
  TH_DEVICE void init() const {
    if (warp::lane() == 0) {
      operation_.prefetch();
      ring_.init();
      if constexpr (shape.split_blocks > 1) {
        merge().init();
      }
      if constexpr (shape.reading == Reading::by_turns) {
        OrderedBarrier<shape>::init(turn_barriers());
      }
      fence::barrier_init();
    }
    warp::sync();
  }

  static constexpr u32 drained_barrier = 14;
  static constexpr u32 made_barrier = 15;

  /// The loader's warps: the barriers are made. Only copies into another block's slots must wait for that block's
  /// barriers.
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

  /// The math warpgroups: wait until they are.
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

  /// What the operation writes into the slots itself, once, is there for every math warpgroup's products.
  TH_DEVICE void prepare() const {
    if (operation_.prepare(memory_, launch::thread_index())) {
      fence::async_shared();
      named_barrier::sync(drained_barrier, math_threads(shape));
    }
  }

  /// Comes behind the loads: the other blocks of the cluster have made their barriers too.
  TH_DEVICE void meet_cluster() const {
    if constexpr (cluster_blocks(shape) > 1 && shape.multicast_blocks == 1) {
      cluster::wait();
    }
  }

  /// This block's part of the k steps, for each half a multiple of slots_together when all of them are.
  static constexpr u32 slots_together = [] {
    if constexpr (hooks.makes_operand) {
      return static_cast<u32>(Operation::slots_together);
    } else {
      return 1U;
    }
  }();
  TH_DEVICE u32 step_at(u32 half) const {
    return half * (operation_.k_steps() / slots_together) / shape.split_blocks * slots_together;
  }
  TH_DEVICE u32 first_step() const { return step_at(half_); }
  TH_DEVICE u32 end_step() const { return step_at(half_ + 1); }

  TH_DEVICE void load() const {
    RingWriter<shape> writer(ring_);
    const bool marks = warp::lane() == 0;
    if (marks) {
      mark(shape.math_warpgroups, Moment::ready);
    }
    for (u32 index = group_; index < operation_.tiles(); index += groups_) {
      const auto tile = operation_.tile(index, member_);
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
    if (marks) {
      mark(shape.math_warpgroups, Moment::finished);
    }
  }

  template <int pass, class Tile>
  TH_DEVICE void load_pass(RingWriter<shape>& writer, const Tile& tile) const {
    const u32 first = first_step();
    const u32 end = end_step();
    TH_NO_UNROLL
    for (u32 step = first; step < end; ++step) {
      const LoadSlot slot = writer.acquire();
      if (Ablated<shape>::loads(pass * (end - first) + step - first)) {
        load_slot<pass>(slot, tile, step, step == first);
      } else {
        Ablated<shape>::pretend_full(slot);
      }
      writer.advance();
    }
  }

  template <int pass, class Tile>
  TH_DEVICE void load_slot(const LoadSlot& slot, const Tile& tile, u32 step, bool first) const {
    if (warp::elect()) {
      if (first) {
        mark(shape.math_warpgroups, Moment::first_slot);
      }
      slot.full.arrive_expect_bytes(operation_.slot_load_bytes);
      operation_.template load<pass>(slot, tile, step, member_);
    }
    warp::sync();
  }

  /// Fills the ring with constants, waits for earlier grids, adds the rest; then slot by slot. A block has one tile.
  template <class Tile>
  TH_DEVICE void load_constants_first(RingWriter<shape>& writer, const Tile& tile) const {
    static_assert(!shape.persistent && shape.passes == 1);
    const u32 first = first_step();
    const u32 end = end_step();
    const u32 ring_end = end - first < static_cast<u32>(shape.stages) ? end : first + shape.stages;
    RingWriter<shape> ahead = writer;
    const auto constants = [&](RingWriter<shape>& at, u32 step) {
      const LoadSlot slot = at.acquire();
      if (warp::elect()) {
        slot.full.arrive_expect_bytes(Operation::slot_load_bytes);
        operation_.load_constant(slot, tile, step);
      }
      warp::sync();
    };
    const auto fresh = [&](u32 step) {
      const LoadSlot slot = writer.acquire();
      if (warp::elect()) {
        operation_.load_fresh(slot, tile, step);
      }
      warp::sync();
      writer.advance();
    };
    TH_NO_UNROLL
    for (u32 step = first; step < ring_end; ++step) {
      constants(ahead, step);
      ahead.advance();
    }
    launch::wait_for_earlier_grids();
    TH_NO_UNROLL
    for (u32 step = first; step < ring_end; ++step) {
      fresh(step);
    }
    TH_NO_UNROLL
    for (u32 step = ring_end; step < end; ++step) {
      if (Ablated<shape>::loads(step - first)) {
        constants(writer, step);
        fresh(step);
      } else {
        Ablated<shape>::pretend_full(writer.acquire());
        writer.advance();
      }
    }
  }

  TH_DEVICE void math(u32 warpgroup) const {
    RingReader<shape> reader(ring_, half_ * shape.multicast_blocks);
    OrderedBarrier<shape> turns(turn_barriers(), warpgroup);
    const u32 steps = (end_step() - first_step()) * shape.passes;
    u32 turn = 0;
    mark(warpgroup, Moment::ready);
    for (u32 index = group_; index < operation_.tiles(); index += groups_) {
      bool mine = true;
      if constexpr (shape.reading == Reading::by_turns) {
        mine = turn == warpgroup;
        turn = turn + 1 == shape.math_warpgroups ? 0 : turn + 1;
      }
      if (mine) {
        compute_tile(reader, turns, operation_.tile(index, member_), warpgroup);
      } else {
        reader.skip(steps);
      }
      if constexpr (!shape.persistent) {
        break;
      }
    }
    operation_.drain();
  }

  template <class Tile>
  TH_DEVICE void compute_tile(RingReader<shape>& reader, OrderedBarrier<shape>& turns, const Tile& tile,
                              u32 warpgroup) const {
    const auto ahead = look_ahead(tile, warpgroup);
    Sums sums;
    sums.clear();
    sums.settle();
    if constexpr (shape.reading == Reading::by_turns) {
      turns.wait();
    }
    const u32 steps = end_step() - first_step();
    if constexpr (!Ablated<shape>::multiplies) {
      Ablated<shape>::release_all(reader, turns, steps * shape.passes);
    } else if constexpr (hooks.makes_operand) {
      if (steps != 0) {
        RegisterOperand<Operation>(operation_, reader, warpgroup).accumulate(sums, steps, [&] {
          mark(warpgroup, Moment::first_slot);
        });
      }
    } else {
      accumulate(reader, turns, sums, warpgroup);
    }
    sums.settle();
    mark(warpgroup, Moment::drained);
    if constexpr (!shape.release_early) {
      launch::release_dependents();
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
    Ablated<shape>::finish(operation_.tiles(), [&] { finish(sums, tile, warpgroup, staging, ahead); });
    mark(warpgroup, Moment::finished);
  }

  struct Nothing {};
  template <class Tile>
  TH_DEVICE auto look_ahead(const Tile& tile, u32 warpgroup) const {
    if constexpr (hooks.ahead) {
      return operation_.ahead(tile, warpgroup, half_);
    } else {
      return Nothing{};
    }
  }
  template <class Tile, class Ahead>
  TH_DEVICE void finish(Sums& sums, const Tile& tile, u32 warpgroup, Shared<u8> staging, const Ahead& ahead) const {
    if constexpr (hooks.ahead) {
      operation_.finish(sums, tile, warpgroup, half_, staging, ahead);
    } else {
      operation_.finish(sums, tile, warpgroup, half_, staging);
    }
  }

  template <int pass>
  TH_DEVICE auto multiply(Sums& sums, u32 warpgroup) const {
    return [this, &sums, warpgroup](Shared<u8> slot) { operation_.template math<pass>(sums, slot, warpgroup); };
  }

  TH_DEVICE void accumulate(RingReader<shape>& reader, const OrderedBarrier<shape>& turns, Sums& sums,
                            u32 warpgroup) const {
    using Products = SlotProducts<Engine, shape>;
    const Products products(reader);
    const u32 steps = end_step() - first_step();
    if constexpr (Products::in_flight > 0) {
      if (steps != 0) {
        products.issue(multiply<0>(sums, warpgroup));
      }
    }
    mark(warpgroup, Moment::first_slot);
    products.issue_and_release(Products::in_flight, steps, multiply<0>(sums, warpgroup));
    if constexpr (shape.passes > 1) {
      products.issue_and_release(0, steps, multiply<1>(sums, warpgroup));
    }
    if constexpr (shape.reading == Reading::by_turns) {
      turns.pass_on();
    }
    products.finish(steps != 0);
  }

  const Operation& operation_;
  Shared<u8> memory_;
  Ring<shape> ring_;
  u32 rank_;
  u32 member_;  ///< among the blocks that fill each other's slots
  u32 half_;    ///< which part of the k range
  u32 group_;   ///< this block's cluster, which shares a tile or neighbouring tiles
  u32 groups_;
};

template <DualOperand Operation>
TH_DEVICE void run(const Operation& operation) {
  Skeleton<Operation>(operation).run();
}

}  // namespace thresher::pipeline
