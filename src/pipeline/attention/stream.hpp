#pragma once
/// The skeleton of attention over long sequences. One producer warp copies queries, keys and values. Each consumer
/// warpgroup keeps 64 query rows and passes over the blocks of keys. It owns every barrier and phase.
///
/// It is persistent: a cluster takes work `cluster`, `cluster + clusters`, … The blocks of a cluster have neighbouring
/// query tiles of one head. Each copies its share of every block of keys and values, and all receive it.
///
/// Barriers of a block: queries_full counts 1 arrival + bytes of its own queries; queries_empty one arrival of each
/// consumer warp. Both keys_full[s] and values_full[s] count an arrival of each warp that copies them + the bytes of
/// a whole block (with FP8: stream_codes.hpp). Any block of the cluster may have copied them. Both keys_empty[s] and
/// values_empty[s] count one arrival of each consumer warpgroup of the cluster, since every producer writes into every
/// block.
#include "pipeline/attention/stream_codes.hpp"
#include "pipeline/attention/stream_memory.hpp"
#include "pipeline/attention/stream_pages.hpp"
#include "pipeline/attention/tile.hpp"
#include "pipeline/ring.hpp"

namespace thresher::pipeline::attention {

/// A warpgroup has read a slot: one arrival on that slot's barrier in every block of the cluster.
template <StreamConfig config>
TH_DEVICE void release(Barrier empty) {
  const u32 thread = launch::thread_index() % 128;
  if constexpr (config.multicast == 1) {
    if (thread == 0) {
      empty.arrive();
    }
  } else if (thread % 32 == 0 && thread / 32 < static_cast<u32>(config.multicast)) {
    cluster::map(empty, thread / 32).arrive();
  }
}

/// The order in which consumer warpgroups issue products: each waits for its turn and passes it on. Named barrier 1 + w
/// is warpgroup w's: 128 threads that pass the turn on and 128 that wait for it. Every warpgroup takes one turn for
/// each block, seen or not, so that all of them take equally many.
template <StreamConfig config>
struct OrderedBarrier {
  static constexpr bool used = config.take_turns && config.math_warpgroups > 1;
  u32 warpgroup;

  /// Comes before the first turn, which is warpgroup 0's.
  TH_DEVICE void start() const {
    if constexpr (used) {
      if (warpgroup == static_cast<u32>(config.math_warpgroups) - 1) {
        pass_on();
      }
    }
  }
  TH_DEVICE void wait() const {
    if constexpr (used) {
      named_barrier::sync(1 + warpgroup, 256);
    }
  }
  TH_DEVICE void pass_on() const {
    if constexpr (used) {
      named_barrier::arrive(warpgroup + 1 == static_cast<u32>(config.math_warpgroups) ? 1 : 2 + warpgroup, 256);
    }
  }
  /// Comes after the last turn: warpgroup 0 takes the one that is left.
  TH_DEVICE void end() const {
    if (warpgroup == 0) {
      wait();
    }
  }
};

/// This block's share of the copies of a tile of `columns` columns: where it is in the tile.
struct TileShare {
  u32 offset_bytes;
  i32 first_key;
  i32 first_panel;
};

template <StreamConfig config, int columns>
TH_DEVICE TileShare own_share() {
  constexpr CopiedShare share = config.copied(columns);
  const u32 rank = config.multicast == 1 ? 0 : cluster::rank();
  const u32 offset = rank * static_cast<u32>(share.keys * share.panels) * panel_row_bytes;
  return share.keys == config.keys ? TileShare{offset, 0, static_cast<i32>(rank) * share.panels}
                                   : TileShare{offset, static_cast<i32>(rank) * share.keys, 0};
}

/// A block of keys and its values. The whole warp; one elected lane issues.
template <StreamConfig config, typename Operation, typename Work>
TH_DEVICE void load_block(const Operation& operation, const StreamMemory<config>& memory, LoadCursor<config>& at,
                          const Work& work, i32 block) {
  constexpr u16 everyone = config.multicast == 1 ? 0 : (1U << config.multicast) - 1;
  const auto copy_keys = [&](const Slot& slot) {
    const TileShare keys = own_share<config, config.head_dim>();
    operation.copy_keys(slot, keys.offset_bytes, work, block * config.keys + keys.first_key, keys.first_panel);
  };
  const auto copy_values = [&](const Slot& slot) {
    const TileShare values = own_share<config, config.value_dim>();
    operation.copy_values(slot, values.offset_bytes, work, block * config.keys + values.first_key, values.first_panel);
  };
  const auto elected = [](const auto& copy) {
    return [&copy](const Slot& slot) {
      if (warp::elect()) {
        copy(slot);
      }
    };
  };
  if constexpr (config.has_codes()) {
    load_codes<config>(memory, at, elected(copy_keys), elected(copy_values));
  } else {
    const u32 slot = at.slot;
    const Phase freed{at.phase.parity ^ 1U};
    memory.keys_empty(slot).wait(freed);
    if (warp::elect()) {
      memory.keys_full(slot).arrive_expect_bytes(config.key_bytes());
      copy_keys(Slot{memory.keys(slot), memory.keys_full(slot), everyone});
    }
    memory.values_empty(slot).wait(freed);
    if (warp::elect()) {
      memory.values_full(slot).arrive_expect_bytes(config.value_bytes());
      copy_values(Slot{memory.values(slot), memory.values_full(slot), everyone});
    }
    at.advance();
  }
}

/// The producer warp.
template <StreamConfig config, typename Operation>
TH_DEVICE void load(const Operation& operation, const StreamMemory<config>& memory) {
  debug::role("load");
  Phase queries_phase{};
  LoadCursor<config> at;
  const i32 count = operation.template work_count<config>();
  TH_NO_UNROLL
  for (i32 turn = 0;; ++turn) {
    const i32 index = operation.work_index(turn);
    if (index >= count) {
      break;
    }
    const auto work = operation.template work<config>(index);
    memory.queries_empty().wait(Phase{queries_phase.parity ^ 1U});
    if (warp::elect()) {
      memory.queries_full().arrive_expect_bytes(config.query_bytes());
      operation.copy_queries(Slot{memory.queries(), memory.queries_full()}, work);
    }
    queries_phase.flip();
    TH_NO_UNROLL
    for (i32 block = work.blocks.begin; block < work.blocks.end; ++block) {
      load_block<config>(operation, memory, at, work, block);
    }
  }
}

/// Takes part in blocks that none of a warpgroup's rows sees. All its threads have seen a slot full before one of them
/// releases it. A late one would miss that phase and wait for the next but one.
template <StreamConfig config>
TH_DEVICE void skip(const StreamMemory<config>& memory, Cursor<config.stages>& at, const OrderedBarrier<config>& turns,
                    i32 blocks) {
  constexpr u32 first_skip_barrier = 8;
  TH_NO_UNROLL
  for (i32 block = 0; block < blocks; ++block) {
    turns.wait();
    turns.pass_on();
    memory.keys_full(at.slot).wait(at.phase);
    memory.values_full(at.slot).wait(at.phase);
    named_barrier::sync(first_skip_barrier + turns.warpgroup, 128);
    release<config>(memory.keys_empty(at.slot));
    release<config>(memory.values_empty(at.slot));
    at.advance();
  }
}

/// A block's scores, while nothing else of this warpgroup is in flight.
template <StreamConfig config, typename Operation, typename Tile>
TH_DEVICE void score_alone(const Operation& operation, Tile& tile, const StreamMemory<config>& memory,
                           const Cursor<config.stages>& at, const OrderedBarrier<config>& turns) {
  using Engine = typename Operation::Engine;
  memory.keys_full(at.slot).wait(at.phase);
  turns.wait();
  operation.score(tile, memory.keys(at.slot));
  Engine::commit();
  turns.pass_on();
  Engine::template retire<0>();
  Engine::settle(tile.scores);
  release<config>(memory.keys_empty(at.slot));
}

/// A block's scores, and the first product of the block before it with its values. That is in flight then.
template <StreamConfig config, typename Operation, typename Tile>
TH_DEVICE void score_beside_product(const Operation& operation, Tile& tile, const StreamMemory<config>& memory,
                                    Cursor<config.stages>& keys_at, const Cursor<config.stages>& values_at,
                                    const OrderedBarrier<config>& turns) {
  using Engine = typename Operation::Engine;
  memory.keys_full(keys_at.slot).wait(keys_at.phase);
  turns.wait();
  operation.score(tile, memory.keys(keys_at.slot));
  Engine::commit();
  memory.values_full(values_at.slot).wait(values_at.phase);
  operation.accumulate(tile, memory.values(values_at.slot), 0);
  Engine::commit();
  turns.pass_on();
  Engine::template retire<1>();
  Engine::settle(tile.scores);
  release<config>(memory.keys_empty(keys_at.slot));
  keys_at.advance();
}

/// The compiler moves waits over arithmetic, and with a wait above the softmax nothing would overlap. It does not move
/// them over a branch on what the softmax gives; this one is never taken, since that is a sum of exponentials.
template <StreamConfig config>
TH_DEVICE void hold_softmax(float not_negative) {
  if constexpr (config.hold_softmax) {
    if (warp::any(not_negative < 0.0F)) {
      fence::block();
    }
  }
}

/// The scores and weights of a work item's first block, ahead of the loop in which scores are a block ahead.
template <StreamConfig config, typename Operation, typename Tile>
TH_DEVICE void weigh_first(const Operation& operation, Tile& tile, const StreamMemory<config>& memory,
                           Cursor<config.stages>& keys_at, const OrderedBarrier<config>& turns, Blocks own) {
  score_alone<config>(operation, tile, memory, keys_at, turns);
  keys_at.advance();
  operation.softmax(tile, own.begin);
  operation.take_weights(tile);
}

/// One work item of one consumer warpgroup. The scores of block i + 1 and the product of block i with its values are in
/// flight together. The softmax of block i + 1 runs while that product does.
template <StreamConfig config, typename Operation, typename Tile>
TH_DEVICE void attend(const Operation& operation, Tile& tile, const StreamMemory<config>& memory,
                      Cursor<config.stages>& keys_at, const OrderedBarrier<config>& turns, Blocks own) {
  using Engine = typename Operation::Engine;
  Cursor<config.stages> values_at = keys_at;
  weigh_first<config>(operation, tile, memory, keys_at, turns, own);
  TH_NO_UNROLL
  for (i32 block = own.begin + 1; block < own.end; ++block) {
    score_beside_product<config>(operation, tile, memory, keys_at, values_at, turns);
    operation.softmax(tile, block);
    hold_softmax<config>(operation.sum_of_weights(tile));
    Engine::template retire<0>();
    operation.settle_product(tile, 0);
    release<config>(memory.values_empty(values_at.slot));
    values_at.advance();
    operation.rescale(tile);
    operation.take_weights(tile);
  }
  memory.values_full(values_at.slot).wait(values_at.phase);
  operation.accumulate(tile, memory.values(values_at.slot), 0);
  Engine::commit();
  Engine::template retire<0>();
  operation.settle_product(tile, 0);
  release<config>(memory.values_empty(values_at.slot));
}

/// The same with FP8, one step after the other: a block's product has accumulators of its own, which leave no registers
/// for the next block's scores. Other warpgroups' products fill the tensor cores meanwhile.
template <StreamConfig config, typename Operation, typename Tile>
TH_DEVICE void attend_to_codes(const Operation& operation, Tile& tile, const StreamMemory<config>& memory,
                               Cursor<config.stages>& at, const OrderedBarrier<config>& turns, Blocks own) {
  using Engine = typename Operation::Engine;
  TH_NO_UNROLL
  for (i32 block = own.begin; block < own.end; ++block) {
    score_alone<config>(operation, tile, memory, at, turns);
    operation.softmax(tile, block);
    operation.take_weights(tile);
    memory.values_full(at.slot).wait(at.phase);
    TH_UNROLL
    for (int product = 0; product < config.products(); ++product) {
      operation.accumulate(tile, memory.values(at.slot), product);
      Engine::commit();
      Engine::template retire<0>();
      operation.settle_product(tile, product);
    }
    release<config>(memory.values_empty(at.slot));
    at.advance();
  }
}

/// A product of a block's weights with its values, once it is in flight.
template <StreamConfig config, typename Operation, typename Tile>
TH_DEVICE void retire_product(const Operation& operation, Tile& tile, int product) {
  Operation::Engine::template retire<0>();
  operation.settle_product(tile, product);
}

/// The products of a block's weights with its values but the first one, which is in flight; that and every other is
/// settled before the next begins. `beside` runs beside the last.
template <StreamConfig config, typename Operation, typename Tile, typename Beside>
TH_DEVICE void multiply_codes_beside(const Operation& operation, Tile& tile, Shared<u8> values, const Beside& beside) {
  using Engine = typename Operation::Engine;
  TH_UNROLL
  for (int product = 1; product < config.products(); ++product) {
    retire_product<config>(operation, tile, product - 1);
    operation.accumulate(tile, values, product);
    Engine::commit();
  }
  beside();
  retire_product<config>(operation, tile, config.products() - 1);
}

/// The same with the next block's scores ahead: they, and the exponentials of their softmax, are computed while a
/// block's weights are multiplied with its values.
template <StreamConfig config, typename Operation, typename Tile>
TH_DEVICE void attend_to_codes_ahead(const Operation& operation, Tile& tile, const StreamMemory<config>& memory,
                                     Cursor<config.stages>& keys_at, const OrderedBarrier<config>& turns, Blocks own) {
  using Engine = typename Operation::Engine;
  Cursor<config.stages> values_at = keys_at;
  weigh_first<config>(operation, tile, memory, keys_at, turns, own);
  TH_NO_UNROLL
  for (i32 block = own.begin + 1; block < own.end; ++block) {
    score_beside_product<config>(operation, tile, memory, keys_at, values_at, turns);
    operation.find_maximum(tile, block);
    hold_softmax<config>(operation.sum_of_factors(tile));
    multiply_codes_beside<config>(operation, tile, memory.values(values_at.slot), [&] {
      operation.weigh(tile);
      hold_softmax<config>(operation.sum_of_weights(tile));
    });
    release<config>(memory.values_empty(values_at.slot));
    values_at.advance();
    operation.take_weights(tile);
  }
  memory.values_full(values_at.slot).wait(values_at.phase);
  operation.accumulate(tile, memory.values(values_at.slot), 0);
  Engine::commit();
  multiply_codes_beside<config>(operation, tile, memory.values(values_at.slot), [] {});
  release<config>(memory.values_empty(values_at.slot));
}

template <StreamConfig config>
TH_DEVICE void release_queries(const StreamMemory<config>& memory) {
  warp::sync();
  if (warp::elect()) {
    memory.queries_empty().arrive();
  }
}

template <StreamConfig config, typename Operation>
TH_DEVICE void math_warpgroup(const Operation& operation, const StreamMemory<config>& memory, u32 warpgroup) {
  debug::role("math", warpgroup);
  const OrderedBarrier<config> turns{warpgroup};
  turns.start();
  Phase queries_phase{};
  Cursor<config.stages> at;
  const i32 count = operation.template work_count<config>();
  TH_NO_UNROLL
  for (i32 turn = 0;; ++turn) {
    const i32 index = operation.work_index(turn);
    if (index >= count) {
      break;
    }
    typename Operation::template Tile<config> tile;
    const WarpgroupBlocks blocks = operation.begin(index, tile, static_cast<i32>(warpgroup));
    memory.queries_full().wait(queries_phase);
    queries_phase.flip();
    operation.take_queries(tile, memory.queries(), warpgroup);
    if constexpr (config.queries_in_registers) {
      release_queries(memory);
    }
    skip<config>(memory, at, turns, blocks.before);
    if (blocks.own.begin < blocks.own.end) {
      if constexpr (config.scores_ahead) {
        attend_to_codes_ahead<config>(operation, tile, memory, at, turns, blocks.own);
      } else if constexpr (config.multiplies_codes) {
        attend_to_codes<config>(operation, tile, memory, at, turns, blocks.own);
      } else {
        attend<config>(operation, tile, memory, at, turns, blocks.own);
      }
    }
    if constexpr (!config.queries_in_registers) {
      release_queries(memory);
    }
    skip<config>(memory, at, turns, blocks.after);
    operation.finish(index, tile, static_cast<i32>(warpgroup));
  }
  turns.end();
}

/// The requirements of the skeleton on an operation. One producer thread copies queries, keys and values of a work item
/// into a slot. A consumer warpgroup begins a work item on its Tile and takes its queries. For each block of keys it
/// issues the scores, turns them into weights and issues their product with the values. `settle_product` takes that
/// when it is retired; rescale and finish follow. `softmax` is `find_maximum` and `weigh`. The sums over this thread's
/// rows are known when these are done: that of the factors, and that of the weights.
template <class Operation, StreamConfig config>
concept StreamedOperation =
    MatrixEngine<typename Operation::Engine> &&
    requires(const Operation& operation, typename Operation::template Tile<config>& tile, const Slot& slot,
             Shared<u8> shared, i32 index, u32 number) {
      { operation.template work_count<config>() } -> Same<i32>;
      { operation.work_index(index) } -> Same<i32>;
      requires Same<decltype(operation.template work<config>(index).blocks), Blocks>;
      { operation.copy_queries(slot, operation.template work<config>(index)) } -> Same<void>;
      { operation.copy_keys(slot, number, operation.template work<config>(index), index, index) } -> Same<void>;
      { operation.copy_values(slot, number, operation.template work<config>(index), index, index) } -> Same<void>;
      { operation.begin(index, tile, index) } -> Same<WarpgroupBlocks>;
      { operation.take_queries(tile, shared, number) } -> Same<void>;
      { operation.score(tile, shared) } -> Same<void>;
      { operation.softmax(tile, index) } -> Same<void>;
      { operation.find_maximum(tile, index) } -> Same<void>;
      { operation.weigh(tile) } -> Same<void>;
      { operation.sum_of_factors(tile) } -> Same<float>;
      { operation.sum_of_weights(tile) } -> Same<float>;
      { operation.take_weights(tile) } -> Same<void>;
      { operation.accumulate(tile, shared, 0) } -> Same<void>;
      { operation.settle_product(tile, 0) } -> Same<void>;
      { operation.rescale(tile) } -> Same<void>;
      { operation.finish(index, tile, index) } -> Same<void>;
    };

/// The whole kernel. The launch has config.threads() threads and clusters of config.multicast blocks.
template <StreamConfig config, StreamedOperation<config> Operation>
TH_DEVICE void stream(const Operation& operation) {
  const StreamMemory<config> memory{launch::shared_memory()};
  if (launch::thread_index() == 0) {
    memory.init();
  }
  if constexpr (config.multicast == 1) {
    block::sync();
  } else {
    cluster::sync();
  }
  launch::wait_for_earlier_grids();
  const u32 group = warp::group_index();
  if (group == 0) {
    registers::decrease<config.loader_registers()>();
    if (warp::index() < static_cast<u32>(config.loading_warps())) {
      if constexpr (config.paged) {
        load_pages<config>(operation, memory, warp::index());
      } else {
        load<config>(operation, memory);
      }
    } else if constexpr (config.has_codes()) {
      prepare_codes<config>(operation, memory, warp::index() - 1);
    }
  } else {
    registers::increase<config.math_registers()>();
    math_warpgroup<config>(operation, memory, group - 1);
  }
  if constexpr (config.multicast != 1) {
    cluster::sync();  // no block leaves while another may still arrive on its barriers or copy into it
  }
}

}  // namespace thresher::pipeline::attention
