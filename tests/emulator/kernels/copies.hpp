#pragma once
// cp.async brings 128 words a step into two buffers, one step ahead; each thread sums its neighbour's words.
#include "machine/machine.hpp"

namespace planted {

using namespace thresher::machine;

enum class CopyDefect {
  none,
  none_with_barrier,      // the same, completion by mbarrier
  no_wait,                // reads what may not have come
  waits_for_one_less,     // leaves the group pending that it reads
  no_sync,                // its own copies are there, its neighbour's may not be
  no_sync_before_refill,  // overwrites a buffer that others still read
  barrier_not_awaited,    // completion by mbarrier, nobody waits
  misaligned,             // a 16-byte copy to a multiple of 4
  touches_earlier_grid,   // reads what an earlier grid still writes
  writes_before_waiting,  // writes what an earlier grid may still read
  releases_first,         // lets the next grid start before it waits
  prefetch_beyond,        // prefetches a piece more than there is
  prefetch_misaligned,    // from an address that is no multiple of 16
  prefetch_uneven,        // bytes that are no multiple of 16
};

struct CopyParams {
  Global<u32> in;   // [steps · 128]
  Global<u32> out;  // [128]
  u32 steps;
  CopyDefect defect;
};

inline constexpr u32 copy_shared_bytes = 2 * 512 + 16;

TH_DEVICE void prefetch(const CopyParams& params) {
  const auto is = [&](CopyDefect wanted) { return params.defect == wanted; };
  const u32 more = is(CopyDefect::prefetch_beyond) ? 16 : 0;
  const u32 skew = is(CopyDefect::prefetch_misaligned) ? 4 : 0;
  const u32 less = is(CopyDefect::prefetch_uneven) ? 4 : 0;
  if (launch::thread_index() == 0) {
    tma::prefetch_bulk(params.in.as<u8>().offset(skew), params.steps * 512 + more - less - 4 * skew);
  }
}

TH_KERNEL(128, 1) copies(TH_GRID_CONSTANT const CopyParams params) {
  const auto is = [&](CopyDefect wanted) { return params.defect == wanted; };
  const bool by_barrier = is(CopyDefect::none_with_barrier) || is(CopyDefect::barrier_not_awaited);
  const u32 thread = launch::thread_index();
  const Shared<u8> memory = launch::shared_memory();
  const Barrier done{memory.offset(1024).address};
  if (thread == 0) {
    done.init(128);
    fence::barrier_init();
  }
  block::sync();
  if (is(CopyDefect::releases_first)) {
    launch::release_dependents();
  }
  prefetch(params);
  if (is(CopyDefect::writes_before_waiting)) {
    params.out.store(thread, 0);
  }
  if (!is(CopyDefect::touches_earlier_grid)) {
    launch::wait_for_earlier_grids();
  }
  const auto bring = [&](u32 step) {
    const u32 skew = is(CopyDefect::misaligned) ? 4 : 0;
    if (is(CopyDefect::misaligned) && thread % 4 == 0) {
      async_copy::copy16(memory.offset(skew), params.in.as<u8>());
    }
    if (step < params.steps) {
      async_copy::copy4(memory.offset(step % 2 * 512 + thread * 4), params.in.offset(step * 128 + thread).as<u8>());
    }
    async_copy::commit();
  };
  u32 total = 0;
  bring(0);
  for (u32 step = 0; step < params.steps; ++step) {
    if (by_barrier) {
      async_copy::arrive_when_done(done);
      if (!is(CopyDefect::barrier_not_awaited)) {
        done.wait(Phase{step % 2});
      }
    } else {
      bring(step + 1);
      if (is(CopyDefect::waits_for_one_less)) {
        async_copy::wait<2>();
      } else if (!is(CopyDefect::no_wait)) {
        async_copy::wait<1>();
      }
      if (!is(CopyDefect::no_sync)) {
        block::sync();
      }
    }
    total += memory.as<u32>().load(step % 2 * 128 + (thread ^ 1U));
    if (!is(CopyDefect::no_sync_before_refill)) {
      block::sync();
    }
    if (by_barrier) {
      bring(step + 1);
    }
  }
  async_copy::wait<0>();
  params.out.store(thread, total);
}

}  // namespace planted
