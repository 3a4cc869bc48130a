#pragma once
// A cluster of two. Each block loads half of every slot and multicasts it to both; both sum what they get:
// out[rank] = sum of in, slot after slot through one buffer. Then the blocks exchange a word by Remote::store and one
// by st.async.
#include "machine/machine.hpp"

namespace planted {

using namespace thresher::machine;

enum class ClusterDefect {
  none,
  no_cluster_sync_at_start,  // multicast into a block that may not have started
  released_to_own_only,      // a reader releases its slot to its own loader, not to the peer's
  peer_ends_early,           // block 1 does not wait for the last multicast into it
  no_cluster_sync_at_end,    // a block ends while the peer still stores into it
  remote_store_unordered,    // the peer's word is read without waiting
  store_async_not_awaited,   // st.async is read before its barrier
  store_async_bytes,         // its barrier awaits four bytes too many
  map_beyond_cluster,        // rank 2 of 2
  mask_beyond_cluster,       // a multicast to block 2
  arrives_twice,             // cluster::arrive twice without a wait
  relaxed_arrive,            // ordinary data handed over by a relaxed arrive
};

struct ClusterParams {
  Global<u32> in;   // [slots · 64]
  Global<u32> out;  // [2 · 3]
  u32 slots;
  ClusterDefect defect;
};

inline constexpr u32 cluster_shared_bytes = 1024;

struct ClusterKernel {
  const ClusterParams& params;

  TH_DEVICE bool is(ClusterDefect wanted) const { return params.defect == wanted; }
  static TH_DEVICE Shared<u8> memory() { return launch::shared_memory(); }
  static TH_DEVICE Barrier barrier(u32 index) { return Barrier{memory().offset(512).address}.offset(index); }
  static TH_DEVICE Barrier full() { return barrier(0); }
  static TH_DEVICE Barrier empty() { return barrier(1); }
  static TH_DEVICE Barrier sent() { return barrier(2); }
  static TH_DEVICE u32 peer() { return cluster::rank() ^ 1U; }

  TH_DEVICE void init() const {
    if (launch::thread_index() == 0) {
      full().init(1);
      empty().init(2);
      sent().init(1);
      debug::name_barrier(full(), "full");
      debug::name_barrier(empty(), "empty");
      debug::name_barrier(sent(), "sent");
      fence::barrier_init();
    }
    warp::sync();
    if (is(ClusterDefect::no_cluster_sync_at_start)) {
      block::sync();
      return;
    }
    cluster::arrive_relaxed();
    cluster::wait();
  }

  /// Warp 0. Each block brings 128 of a slot's 256 bytes to both.
  TH_DEVICE void load() const {
    debug::role("load");
    Phase phase{1};
    for (u32 slot = 0; slot < params.slots; ++slot) {
      empty().wait(phase);
      if (warp::elect()) {
        full().arrive_expect_bytes(256);
        const u32 half = cluster::rank() * 128;
        const u16 mask = is(ClusterDefect::mask_beyond_cluster) ? 7 : 3;
        tma::load_bulk_multicast(memory().offset(half), params.in.as<u8>().offset(slot * 256 + half), 128, full(),
                                 mask);
      }
      warp::sync();
      phase.flip();
    }
  }

  /// Warp 1.
  TH_DEVICE u32 sum() const {
    debug::role("sum");
    u32 total = 0;
    Phase phase{0};
    const u32 slots = params.slots - (is(ClusterDefect::peer_ends_early) && cluster::rank() == 1 ? 1 : 0);
    for (u32 slot = 0; slot < slots; ++slot) {
      full().wait(phase);
      total += memory().as<u32>().load(warp::lane()) + memory().as<u32>().load(warp::lane() + 32);
      warp::sync();
      if (warp::elect()) {
        empty().arrive();
        if (is(ClusterDefect::released_to_own_only)) {
          empty().arrive();
        } else {
          cluster::map(empty(), peer()).arrive();
        }
      }
      phase.flip();
    }
    for (u32 distance = 16; distance > 0; distance /= 2) {
      total += warp::shuffle_xor(total, distance);
    }
    return total;
  }

  /// Words 0 and 1 of the exchange area, by thread 0 of warp 1.
  TH_DEVICE void send(u32 word) const {
    const Shared<u32> mail = memory().offset(256).as<u32>();
    cluster::map(mail, is(ClusterDefect::map_beyond_cluster) ? 2 : peer()).store(0, word);
    cluster::store_async(cluster::map(mail, peer()).offset(1), word + 1, cluster::map(sent(), peer()));
  }

  TH_DEVICE void receive() const {
    const Shared<u32> mail = memory().offset(256).as<u32>();
    const i64 base = static_cast<i64>(cluster::rank()) * 3;
    params.out.store(base + 1, mail.load(0));
    if (!is(ClusterDefect::store_async_not_awaited)) {
      sent().wait_cluster(Phase{0});
    }
    params.out.store(base + 2, mail.load(1));
    sent().wait_cluster(Phase{0});
  }
};

TH_KERNEL(64, 1) in_cluster(TH_GRID_CONSTANT const ClusterParams params) {
  const ClusterKernel kernel{params};
  const auto is = [&](ClusterDefect wanted) { return kernel.is(wanted); };
  kernel.init();
  const bool speaks = launch::thread_index() == 32;
  u32 total = 0;
  if (warp::index() == 0) {
    kernel.load();
  } else {
    total = kernel.sum();
  }
  if (is(ClusterDefect::peer_ends_early)) {
    return;
  }
  if (speaks) {
    params.out.store(static_cast<i64>(cluster::rank()) * 3, total);
    ClusterKernel::sent().arrive_expect_bytes(is(ClusterDefect::store_async_bytes) ? 8 : 4);
    kernel.send(total);
  }
  if (is(ClusterDefect::relaxed_arrive)) {
    cluster::arrive_relaxed();
    cluster::wait();
  } else if (!is(ClusterDefect::remote_store_unordered)) {
    cluster::arrive();
    if (is(ClusterDefect::arrives_twice)) {
      cluster::arrive();
    }
    cluster::wait();
  }
  if (speaks) {
    kernel.receive();
    cluster::map(ClusterKernel::memory().offset(320).as<u32>(), ClusterKernel::peer()).store(0, total);
  }
  if (!is(ClusterDefect::no_cluster_sync_at_end)) {
    cluster::sync();
  }
}

}  // namespace planted
