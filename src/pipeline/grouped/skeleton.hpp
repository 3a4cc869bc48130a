#pragma once
/// The body of a grouped kernel: blocks that stay take tile after tile of groups whose rows only the device knows. One
/// loader warp makes the directory and fills the ring, math warpgroups empty it, each tile with products of the least
/// width that holds its rows: all of them one tile, or by turns each a tile of its own.
#include "machine/debug.hpp"
#include "machine/fence.hpp"
#include "machine/launch.hpp"
#include "machine/named_barrier.hpp"
#include "machine/registers.hpp"
#include "pipeline/accumulator_tiles.hpp"
#include "pipeline/grouped/deal.hpp"
#include "pipeline/grouped/directory.hpp"
#include "pipeline/grouped/rung.hpp"
#include "pipeline/operation.hpp"
#include "pipeline/products.hpp"
#include "pipeline/promoted_products.hpp"
#include "pipeline/register_operand.hpp"
#include "pipeline/ring.hpp"
#include "pipeline/timeline.hpp"
#include "pipeline/turns.hpp"

namespace thresher::pipeline {

/// What the skeleton asks of a grouped operation. One thread of the loader calls prefetch first of all, and for each
/// slot `load`, whose copies bring slot_load_bytes(tile). The loader's lanes together call `inspect`, where the
/// operation `inspects`, for one tile of each stretch of rows; it gives flags. One thread `report`s them at the end
/// with what was wrong with the bounds: of every block where the operation inspects, else of the first. A math
/// warpgroup makes a `Part` for each tile, of the rung that holds its rows; where the operation `deals_rows` to the
/// warpgroups that share a tile, one whose part has none passes over the tile.
template <class Operation>
concept Grouped = MatrixEngine<typename Operation::Engine> &&
                  requires(const Operation& operation, const GroupTile& tile, const LoadSlot& slot, u32 at) {
                    requires Same<decltype(Operation::shape), const Shape>;
                    requires Same<decltype(Operation::tile_widths), const TileWidths>;
                    requires Same<decltype(Operation::makes_operand), const bool>;
                    requires Same<decltype(Operation::promotes), const bool>;
                    requires Same<decltype(Operation::inspects), const bool>;
                    requires Same<decltype(Operation::deals_rows), const bool>;
                    typename Operation::template Part<Operation::tile_widths.least>;
                    { operation.groups() } -> Same<const Groups&>;
                    { operation.k_steps() } -> Same<u32>;
                    { operation.prefetch() } -> Same<void>;
                    { operation.inspect(tile) } -> Same<u32>;
                    { operation.report(at) } -> Same<void>;
                    { operation.slot_load_bytes(tile) } -> Same<u32>;
                    { operation.load(slot, tile, at) } -> Same<void>;
                    { operation.profile() } -> Same<Global<u64>>;
                  };

/// What a math warpgroup does with tiles of so many columns: `ahead` asks memory for what `finish` will need, before
/// the first slot. Products are issued by `multiply`, or of an A operand that is made in registers (MakesOperand), or
/// slot by slot for sums in float32 (Promotes).
template <class Part>
concept GroupedPart = requires(const Part& part, typename Part::Sums& sums, const GroupTile& tile, Shared<u8> memory) {
  { part.ahead(tile) } -> Same<typename Part::Ahead>;
  { part.finish(sums, tile, memory, part.ahead(tile)) } -> Same<void>;
};

template <Grouped Operation>
class GroupedSkeleton {
 public:
  static constexpr Shape shape = Operation::shape;
  using Engine = typename Operation::Engine;
  static_assert(shape.persistent && cluster_blocks(shape) == 1 && shape.passes == 1 &&
                shape.ablation == Ablation::none);
  static constexpr bool by_turns = shape.reading == Reading::by_turns;
  static_assert(!Operation::makes_operand || (!by_turns && !Operation::promotes));

  TH_DEVICE explicit GroupedSkeleton(const Operation& operation)
      : operation_(operation),
        memory_(launch::shared_memory()),
        ring_{memory_, barriers(), barriers().offset(shape.stages)},
        directory_(operation.groups(), memory_.offset_bytes(directory_offset(shape))),
        block_(launch::block_index().x),
        blocks_(launch::block_count().x) {}

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
      u32 flags = 0;
      if (loader) {
        debug::role("load");
        init();
        launch::wait_for_earlier_grids();
        flags = describe();
      }
      named_barrier::arrive(made_barrier, threads(shape));
      if constexpr (shape.loader_registers > 0) {
        registers::decrease<shape.loader_registers>();
      }
      if (loader) {
        load(flags);
      }
    } else {
      debug::role("math", warpgroup);
      named_barrier::sync(made_barrier, threads(shape));
      if constexpr (shape.math_registers > 0) {
        registers::increase<shape.math_registers>();
      }
      launch::wait_for_earlier_grids();
      math(warpgroup);
    }
  }

 private:
  static constexpr u32 made_barrier = 15;

  TH_DEVICE Barrier barriers() const { return {memory_.offset_bytes(barrier_offset(shape)).address}; }
  TH_DEVICE Barrier turn_barriers() const { return barriers().offset(2 * shape.stages + 2); }

  TH_DEVICE void mark(u32 role, Moment moment) const {
    if constexpr (shape.profiled) {
      Timeline<shape>(operation_.profile()).mark(role, moment);
    }
  }

  TH_DEVICE void init() const {
    if (warp::lane() == 0) {
      operation_.prefetch();
      ring_.init();
      if constexpr (by_turns) {
        OrderedBarrier<shape>::init(turn_barriers());
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

  /// The next tile is looked up when the first slot of this one has been asked for.
  TH_DEVICE void load(u32 flags) const {
    RingWriter<shape> writer(ring_);
    const u32 tiles = directory_.tiles();
    const u32 steps = operation_.k_steps();
    if (warp::lane() == 0) {
      mark(shape.math_warpgroups, Moment::ready);
    }
    GroupTile next = block_ < tiles ? directory_.find(block_) : GroupTile{};
    for (StridedTiles deal(block_, blocks_); deal.index() < tiles; deal.advance()) {
      const GroupTile tile = next;
      load_slot(writer, tile, 0);
      if (deal.next() < tiles) {
        next = directory_.find(deal.next());
      }
      if constexpr (Operation::inspects) {
        if (tile.column == 0) {
          flags |= operation_.inspect(tile);
        }
      }
      TH_NO_UNROLL
      for (u32 step = 1; step < steps; ++step) {
        load_slot(writer, tile, step);
      }
    }
    if (warp::lane() == 0) {
      if (Operation::inspects || block_ == 0) {
        operation_.report(flags);
      }
      mark(shape.math_warpgroups, Moment::finished);
    }
  }

  TH_DEVICE void load_slot(RingWriter<shape>& writer, const GroupTile& tile, u32 step) const {
    const LoadSlot slot = writer.acquire();
    if (warp::elect()) {
      slot.full.arrive_expect_bytes(operation_.slot_load_bytes(tile));
      operation_.load(slot, tile, step);
    }
    warp::sync();
    writer.advance();
  }

  TH_DEVICE void math(u32 warpgroup) const {
    RingReader<shape> reader(ring_, 0);
    OrderedBarrier<shape> turns(turn_barriers(), warpgroup);
    const u32 tiles = directory_.tiles();
    u32 turn = 0;
    if (launch::thread_index() % 128 == 0) {
      mark(warpgroup, Moment::ready);
    }
    for (StridedTiles deal(block_, blocks_); deal.index() < tiles; deal.advance()) {
      if constexpr (by_turns) {
        const bool is_mine = turn == warpgroup;
        turn = turn + 1 == shape.math_warpgroups ? 0 : turn + 1;
        if (!is_mine) {
          reader.skip(operation_.k_steps());
          continue;
        }
      }
      const GroupTile tile = directory_.find(deal.index());
      with_tile_width<Operation::tile_widths>(tile.tile_width, [&](auto tile_width) {
        compute(reader, turns, tile, warpgroup,
                typename Operation::template Part<decltype(tile_width)::columns>(operation_, warpgroup));
      });
      if (launch::thread_index() % 128 == 0) {
        mark(warpgroup, Moment::finished);
      }
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

  template <GroupedPart Part>
  TH_DEVICE void compute(RingReader<shape>& reader, OrderedBarrier<shape>& turns, const GroupTile& tile, u32 warpgroup,
                         const Part& part) const {
    if constexpr (Operation::deals_rows) {
      if (!part.has_rows(tile)) {
        pass_over(reader);
        return;
      }
    }
    const typename Part::Ahead ahead = part.ahead(tile);
    typename Part::Sums sums;
    sums.clear();
    sums.settle();
    if constexpr (by_turns) {
      turns.wait();
    }
    const u32 steps = operation_.k_steps();
    if constexpr (Operation::makes_operand) {
      RegisterOperand<Part>(part, reader, warpgroup).accumulate(sums, steps, [] {});
    } else if constexpr (Operation::promotes) {
      PromotedProducts<Engine, shape, Part>(part, reader).accumulate(sums, steps, ahead, [&] {
        if constexpr (by_turns) {
          turns.pass_on();
        }
      });
    } else {
      using Products = SlotProducts<Engine, shape>;
      const Products products(reader);
      const auto multiply = [&](Shared<u8> slot) { part.multiply(sums, slot); };
      if constexpr (Products::in_flight > 0) {
        products.issue(multiply);
      }
      products.issue_and_release(Products::in_flight, steps, multiply);
      if constexpr (by_turns) {
        turns.pass_on();
      }
      products.finish(true);
    }
    sums.settle();
    part.finish(sums, tile, memory_.offset_bytes(staging_offset(shape) + warpgroup * shape.staging_bytes), ahead);
  }

  const Operation& operation_;
  Shared<u8> memory_;
  Ring<shape> ring_;
  Directory<Operation::tile_widths> directory_;
  u32 block_;
  u32 blocks_;
};

template <Grouped Operation>
TH_DEVICE void run_grouped(const Operation& operation) {
  GroupedSkeleton<Operation>(operation).run();
}

}  // namespace thresher::pipeline
