#pragma once
/// The skeleton of attention over few keys: a cluster divides the keys of 64 query rows, and each block merges a share
/// of the output's columns. One warpgroup a block and no ring: all keys and values of a block are copied at once.
///
/// Barriers of a block: full[0] has queries and the first chunk of keys, full[1] the second chunk, full[2] and full[3]
/// the two chunks of values. Each counts 1 arrival + bytes. merge counts 1 arrival + the bytes that every other block
/// sends. All are used once. The merge barrier is armed before the cluster's first synchronization, so that no peer's
/// bytes come before their count. A block ends when it has all that the others sent, and they need nothing more of it.
#include "pipeline/attention/tile.hpp"

namespace thresher::pipeline::attention {

/// Four floats of one thread.
using Message = Vector<float, 4>;

template <SplitConfig config>
struct SplitMemory {
  Shared<u8> memory;

  TH_DEVICE Shared<u8> queries() const { return memory; }
  TH_DEVICE Shared<u8> keys(int chunk) const {
    return memory.offset_bytes(config.query_bytes() + static_cast<u32>(chunk) * config.chunk_bytes());
  }
  TH_DEVICE Shared<u8> values(int chunk) const { return keys(SplitConfig::chunks + chunk); }
  /// Message `index` of the calling thread from the peer that stands `place`-th among the other blocks.
  TH_DEVICE Shared<Message> message(u32 place, int index) const {
    return memory
        .offset_bytes(config.merge_offset() + place * config.sent_bytes() +
                      static_cast<u32>(index) * config.message_bytes() + launch::thread_index() * 16)
        .template as<Message>();
  }
  TH_DEVICE Barrier full(int index) const {
    return Barrier{memory.offset_bytes(config.barrier_offset()).address}.offset(static_cast<u32>(index));
  }
  TH_DEVICE Barrier merge() const { return full(4); }

  TH_DEVICE void init() const {
    TH_UNROLL
    for (int index = 0; index < 5; ++index) {
      full(index).init(1);
      debug::name_barrier(full(index), index < 4 ? "full" : "merge", static_cast<u32>(index));
    }
    fence::barrier_init();
  }
};

/// Sends every other block its columns of this block's partial result, and adds what they sent to its own columns. It
/// adds itself first, then the others by rank, so that the result does not depend on their timing.
template <SplitConfig config, typename Operation, typename Tile>
TH_DEVICE void exchange(const Operation& operation, Tile& tile, const SplitMemory<config>& memory, u32 rank) {
  if constexpr (!config.meet_early) {
    cluster::wait();
  }
  TH_UNROLL
  for (u32 peer = 0; peer < static_cast<u32>(config.cluster); ++peer) {
    if (peer == rank) {
      operation.take_own(tile, static_cast<int>(peer));
    } else {
      const u32 place = rank < peer ? rank : rank - 1;
      const RemoteBarrier merge = cluster::map(memory.merge(), peer);
      const Remote<Message> first = cluster::map(memory.message(place, 0), peer);
      TH_UNROLL
      for (int index = 0; index < config.messages(); ++index) {
        cluster::store_async(first.offset(static_cast<u32>(index * SplitConfig::threads)),
                             operation.message(tile, static_cast<int>(peer), index), merge);
      }
    }
  }
  memory.merge().wait_cluster(Phase{});
  TH_UNROLL
  for (u32 place = 0; place + 1 < static_cast<u32>(config.cluster); ++place) {
    operation.merge(tile, [&](int index) { return memory.message(place, index).load(); });
  }
}

/// The requirements of the skeleton on an operation. `chunks` is the number of this block's chunks of keys. One thread
/// copies queries, keys and values into slots. All threads then score and inspect each chunk, set the running maxima of
/// their rows, do softmax and accumulate part after part, and finalize. `message` is the part of a thread's partial
/// result that another block gets. `take_own` and `merge` make the result of this block's columns, and `finish` writes
/// it.
template <class Operation, SplitConfig config>
concept SplitOperation = MatrixEngine<typename Operation::Engine> &&
                         requires(const Operation& operation, typename Operation::template Tile<config>& tile,
                                  const Slot& slot, Shared<u8> shared, int index, Message (&received)(int)) {
                           requires Same<decltype(operation.template work<config>(index).chunks), i32>;
                           { operation.copy_queries(slot, operation.template work<config>(index)) } -> Same<void>;
                           { operation.copy_keys(slot, operation.template work<config>(index), index) } -> Same<void>;
                           { operation.copy_values(slot, operation.template work<config>(index), index) } -> Same<void>;
                           { operation.begin(operation.template work<config>(index), tile) } -> Same<void>;
                           { operation.score(tile, shared, shared, index) } -> Same<void>;
                           { operation.inspect(operation.template work<config>(index), tile, index) } -> Same<void>;
                           { operation.set_running_max(tile) } -> Same<void>;
                           { operation.softmax(tile, index, index) } -> Same<void>;
                           { operation.accumulate(tile, shared, index, index) } -> Same<void>;
                           { operation.finalize(tile) } -> Same<void>;
                           { operation.message(tile, index, index) } -> Same<Message>;
                           { operation.take_own(tile, index) } -> Same<void>;
                           { operation.merge(tile, received) } -> Same<void>;
                           { operation.finish(operation.template work<config>(index), tile) } -> Same<void>;
                         };

/// One thread: the copies of everything that this block needs, in the order in which it is needed.
template <SplitConfig config, typename Operation, typename Work>
TH_DEVICE void copy_operands(const Operation& operation, const SplitMemory<config>& memory, const Work& work) {
  memory.full(0).arrive_expect_bytes(config.query_bytes() + config.chunk_bytes());
  operation.copy_queries(Slot{memory.queries(), memory.full(0)}, work);
  operation.copy_keys(Slot{memory.keys(0), memory.full(0)}, work, 0);
  if (work.chunks > 1) {
    memory.full(1).arrive_expect_bytes(config.chunk_bytes());
    operation.copy_keys(Slot{memory.keys(1), memory.full(1)}, work, 1);
  }
  memory.full(2).arrive_expect_bytes(config.chunk_bytes());
  operation.copy_values(Slot{memory.values(0), memory.full(2)}, work, 0);
  if (work.chunks > 1) {
    memory.full(3).arrive_expect_bytes(config.chunk_bytes());
    operation.copy_values(Slot{memory.values(1), memory.full(3)}, work, 1);
  }
}

/// The scores of all chunks, and the largest of each row.
template <SplitConfig config, typename Operation, typename Work, typename Tile>
TH_DEVICE void score_chunks(const Operation& operation, const SplitMemory<config>& memory, const Work& work,
                            Tile& tile) {
  using Engine = typename Operation::Engine;
  TH_UNROLL
  for (int chunk = 0; chunk < SplitConfig::chunks; ++chunk) {
    if (chunk < work.chunks) {
      memory.full(chunk).wait(Phase{});
      operation.score(tile, memory.queries(), memory.keys(chunk), chunk);
      Engine::commit();
    }
  }
  if constexpr (config.inspect_early) {
    Engine::template retire<1>();
    operation.inspect(work, tile, 0);
  }
  Engine::template retire<0>();
  TH_UNROLL
  for (int chunk = 0; chunk < SplitConfig::chunks; ++chunk) {
    if (chunk < work.chunks && !(config.inspect_early && chunk == 0)) {
      operation.inspect(work, tile, chunk);
    }
  }
  operation.set_running_max(tile);
}

/// The weights of all chunks times their values, part after part.
template <SplitConfig config, typename Operation, typename Work, typename Tile>
TH_DEVICE void accumulate_chunks(const Operation& operation, const SplitMemory<config>& memory, const Work& work,
                                 Tile& tile) {
  using Engine = typename Operation::Engine;
  TH_UNROLL
  for (int chunk = 0; chunk < SplitConfig::chunks; ++chunk) {
    if (chunk < work.chunks) {
      TH_UNROLL
      for (int part = 0; part < config.parts; ++part) {
        operation.softmax(tile, chunk, part);  // while the product of the part before runs
        if (part == 0) {
          memory.full(2 + chunk).wait(Phase{});
        }
        operation.accumulate(tile, memory.values(chunk), chunk, part);
        Engine::commit();
      }
    }
  }
  Engine::template retire<0>();
  operation.finalize(tile);
}

/// The whole kernel. The launch has 128 threads and clusters of config.cluster blocks.
template <SplitConfig config, SplitOperation<config> Operation>
TH_DEVICE void split(const Operation& operation) {
  static_assert(config.merged_columns() % (8 * config.groups_per_message()) == 0);
  static_assert(!config.inspect_early || config.whole);
  const SplitMemory<config> memory{launch::shared_memory()};
  const u32 rank = config.cluster == 1 ? 0 : cluster::rank();
  const bool issues = warp::index() == 0 && warp::elect();
  if (issues) {
    memory.init();
    if constexpr (config.cluster > 1) {
      memory.merge().arrive_expect_bytes(static_cast<u32>(config.cluster - 1) * config.sent_bytes());
    }
  }
  launch::wait_for_earlier_grids();
  const auto work = operation.template work<config>(static_cast<i32>(rank));
  if (issues && work.chunks > 0) {
    copy_operands<config>(operation, memory, work);
  }
  block::sync();
  if constexpr (config.cluster > 1) {
    cluster::arrive_relaxed();
    if constexpr (config.meet_early) {
      cluster::wait();
    }
  }
  typename Operation::template Tile<config> tile;
  operation.begin(work, tile);
  score_chunks<config>(operation, memory, work, tile);
  launch::release_dependents();
  accumulate_chunks<config>(operation, memory, work, tile);
  if constexpr (config.cluster > 1) {
    exchange<config>(operation, tile, memory, rank);
  } else {
    operation.take_own(tile, 0);
  }
  operation.finish(work, tile);
}

}  // namespace thresher::pipeline::attention
