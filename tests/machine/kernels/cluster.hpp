#pragma once
// Blocks of a cluster: ranks, each other's memory, multicast, asynchronous stores.
#include "machine/machine.hpp"

namespace thresher::machine::test {

struct ClusterParams {
  Global<u32> in;   // [64]
  TensorMap map;    // in as rows of 16, boxes of 16 × 4
  Global<u32> out;  // [blocks · 64 · 6]
};

/// 64 threads, clusters of 4. Each block sends to the next one.
TH_KERNEL(64, 1) neighbours(TH_GRID_CONSTANT const ClusterParams params) {
  const u32 thread = launch::thread_index();
  const u32 rank = cluster::rank();
  const u32 next = (rank + 1) % cluster::size();
  const Shared<u8> memory = launch::shared_memory();
  const auto stored = memory.as<u32>();                    // [64] by Remote::store
  const auto sent = memory.offset_bytes(256).as<u32>();    // [64 · 2] by st.async
  const auto shown = memory.offset_bytes(1024).as<u32>();  // [64] read by the block before
  const auto boxes = memory.offset_bytes(1280);            // [4][256 bytes] by multicast
  const auto bulks = memory.offset_bytes(2304);            // [2][64 bytes] by bulk multicast
  const Barrier full{memory.offset_bytes(2560).address};
  const Barrier arrivals = full.offset(1);
  if (thread == 0) {
    full.init(1);
    arrivals.init(64);
    fence::barrier_init();
    full.arrive_expect_bytes(512 + 4 * 256 + 2 * 64);
  }
  cluster::sync();
  cluster::map(stored, next).store(thread, rank * 100 + thread);
  cluster::store_async(cluster::map(sent, next).offset(thread * 2).as<Vector<u32, 2>>(),
                       Vector<u32, 2>{{rank * 100 + thread, thread}}, cluster::map(full, next));
  shown.store(thread, rank * 1000 + thread);
  if (thread == 0) {
    tma::load_multicast(boxes.offset_bytes(rank * 256), params.map, full, At{0, static_cast<i32>(rank) - 1}, 0xF);
    if (rank < 2) {
      tma::load_bulk_multicast(bulks.offset_bytes(rank * 64), params.in.as<u8>().offset(rank * 128), 64, full, 0xF);
    }
  }
  cluster::map(arrivals, next).arrive();
  full.wait_cluster(Phase{0});
  arrivals.wait_cluster(Phase{0});
  cluster::arrive();
  cluster::wait();
  const i64 base = (static_cast<i64>(launch::block_index().x) * 64 + thread) * 5;
  params.out.store(base, stored.load(thread));
  params.out.store(base + 1, sent.load(thread * 2) * 100 + sent.load(thread * 2 + 1));
  params.out.store(base + 2, boxes.as<u32>().load(thread * 4));
  params.out.store(base + 3, bulks.as<u32>().load(thread % 32));
  params.out.store(base + 4, cluster::map(shown, next).load(thread) + rank * 16 + cluster::size());
  cluster::sync();
}

struct WaveParams {
  Global<u32> out;
};

/// Programmatic dependent launch in an ordinary launch.
TH_KERNEL(32, 1) dependent(TH_GRID_CONSTANT const WaveParams params) {
  launch::release_dependents();
  launch::wait_for_earlier_grids();
  params.out.store(launch::thread_index(), launch::thread_index() + 1);
}

}  // namespace thresher::machine::test
