#pragma once
// A loader warp fills a ring by TMA; two math warpgroups multiply what it holds: C[128, 64] = A[128, k]·B[64, k]ᵀ in
// fp16, written with ordinary stores. Each `Defect` is one line that differs.
#include "machine/machine.hpp"

namespace planted {

using namespace thresher::machine;

enum class RingDefect {
  none,
  loader_does_not_flip,       // the loader's phase stays when the ring wraps
  reader_does_not_flip,       // the readers' phase stays
  too_few_bytes,              // announces a row less than the copies bring
  too_many_bytes,             // announces a row more
  released_before_wait,       // a slot is released before its multiplies are retired
  never_released,             // the readers forget to release
  too_many_release_arrivals,  // every thread of a warpgroup releases, one arrival each is expected
  too_few_release_arrivals,   // empty counts one warpgroup, two read
  no_wait_for_full,           // the readers do not wait for the copies
  no_wait_for_empty,          // the loader does not wait for the readers
  accumulators_read_early,    // the last wait is missing
  no_settle,                  // wait, but no settle
  no_product_fence,           // the first fence is missing
  not_zeroed,                 // the first multiply adds to nothing
  no_barrier_fence,           // fence::barrier_init is missing
  no_sync_after_init,         // nobody waits for the init
  commit_without_wait,        // the kernel ends with multiplies in flight
  loader_skips_a_slot,        // the loader thinks the last step is empty, the readers do not
  one_warp_skips_multiply,    // a warp leaves the warpgroup
  different_descriptor,       // a warp multiplies other bytes than the rest
  box_beyond_shared_memory,   // the last slot does not fit
  barrier_in_slot,            // the barriers lie inside the last slot
};

struct RingParams {
  TensorMap a;  // boxes of 64 × 128
  TensorMap b;  // boxes of 64 × 64
  Global<float> c;
  u32 k;
  RingDefect defect;
};

inline constexpr u32 ring_stages = 3;
inline constexpr u32 ring_a_bytes = 128 * 128;
inline constexpr u32 ring_b_bytes = 64 * 128;
inline constexpr u32 ring_slot_bytes = ring_a_bytes + ring_b_bytes;
inline constexpr u32 ring_shared_bytes = ring_stages * ring_slot_bytes + 64;

struct RingKernel {
  const RingParams& params;

  TH_DEVICE bool is(RingDefect wanted) const { return params.defect == wanted; }

  TH_DEVICE Barrier full(u32 slot) const {
    const u32 offset =
        is(RingDefect::barrier_in_slot) ? ring_stages * ring_slot_bytes - 64 : ring_stages * ring_slot_bytes;
    return Barrier{launch::shared_memory().offset_bytes(offset).address}.offset(slot);
  }
  TH_DEVICE Barrier empty(u32 slot) const { return full(0).offset(ring_stages + slot); }
  TH_DEVICE Shared<u8> slot_of(u32 slot) const {
    const u32 shift = is(RingDefect::box_beyond_shared_memory) && slot == ring_stages - 1 ? 8192 : 0;
    return launch::shared_memory().offset_bytes(slot * ring_slot_bytes + shift);
  }

  TH_DEVICE void init() const {
    if (launch::thread_index() == 0) {
      for (u32 s = 0; s < ring_stages; ++s) {
        full(s).init(1);
        empty(s).init(is(RingDefect::too_few_release_arrivals) ? 1 : 2);
        debug::name_barrier(full(s), "full", s);
        debug::name_barrier(empty(s), "empty", s);
      }
      if (!is(RingDefect::no_barrier_fence)) {
        fence::barrier_init();
      }
    }
    if (!is(RingDefect::no_sync_after_init)) {
      block::sync();
    }
  }

  TH_DEVICE void load() const {
    debug::role("load");
    const u32 steps = params.k / 64 - (is(RingDefect::loader_skips_a_slot) ? 1 : 0);
    Phase phase{1};
    for (u32 step = 0, slot = 0; step < steps; ++step) {
      if (!is(RingDefect::no_wait_for_empty)) {
        empty(slot).wait(phase);
      }
      if (warp::elect()) {
        const u32 bytes =
            ring_slot_bytes - (is(RingDefect::too_few_bytes) ? 128 : 0) + (is(RingDefect::too_many_bytes) ? 128 : 0);
        full(slot).arrive_expect_bytes(bytes);
        tma::load(slot_of(slot), params.a, full(slot), At{static_cast<i32>(step * 64), 0});
        tma::load(slot_of(slot).offset(ring_a_bytes), params.b, full(slot), At{static_cast<i32>(step * 64), 0});
      }
      if (++slot == ring_stages) {
        slot = 0;
        if (!is(RingDefect::loader_does_not_flip)) {
          phase.flip();
        }
      }
    }
  }

  TH_DEVICE void release(u32 slot) const {
    if (is(RingDefect::never_released)) {
      return;
    }
    if (launch::thread_index() % 128 == 0 || is(RingDefect::too_many_release_arrivals)) {
      empty(slot).arrive();
    }
  }

  TH_DEVICE void multiply_slot(Accumulators<64>& sums, u32 slot, u32 group, bool first) const {
    const auto a = wgmma::descriptor<Swizzle::b128>(slot_of(slot).offset(group * 64 * 128), 0, 1024);
    u32 b_offset = ring_a_bytes;
    if (is(RingDefect::different_descriptor) && warp::index() % 4 == 1) {
      b_offset -= 1024;
    }
    const auto b = wgmma::descriptor<Swizzle::b128>(slot_of(slot).offset(b_offset), 0, 1024);
    for (u32 k = 0; k < 4; ++k) {
      const bool accumulate = !first || k != 0 || is(RingDefect::not_zeroed);
      wgmma::multiply<Half>(sums, a.advance(k * 32), b.advance(k * 32), accumulate);
    }
  }

  TH_DEVICE void math(u32 group) const {
    debug::role("math", group);
    Accumulators<64> sums;
    Phase phase{0};
    const u32 steps = params.k / 64;
    u32 held = 0;
    for (u32 step = 0, slot = 0; step < steps; ++step) {
      if (!is(RingDefect::no_wait_for_full)) {
        full(slot).wait(phase);
      }
      if (!(is(RingDefect::no_product_fence) && step == 0)) {
        wgmma::fence();
      }
      if (!(is(RingDefect::one_warp_skips_multiply) && warp::index() == 2)) {
        multiply_slot(sums, slot, group, step == 0);
      }
      wgmma::commit();
      if (is(RingDefect::released_before_wait)) {
        release(slot);
      } else if (step > 0) {
        wgmma::wait<1>();
        release(held);
      }
      held = slot;
      if (++slot == ring_stages) {
        slot = 0;
        if (!is(RingDefect::reader_does_not_flip)) {
          phase.flip();
        }
      }
    }
    if (is(RingDefect::commit_without_wait)) {
      return;
    }
    if (!is(RingDefect::accumulators_read_early)) {
      wgmma::wait<0>();
    }
    if (!is(RingDefect::no_settle)) {
      wgmma::settle(sums);
    }
    for (int i = 0; i < Accumulators<64>::elements; ++i) {
      const u32 thread = launch::thread_index() % 128;
      const u32 row = group * 64 + fragment::row(thread, static_cast<u32>(i));
      params.c.store(row * 64 + fragment::column(thread, static_cast<u32>(i)), sums.get(i));
    }
  }
};

TH_KERNEL(288, 1) ring(TH_GRID_CONSTANT const RingParams params) {
  const RingKernel kernel{params};
  kernel.init();
  const u32 group = warp::group_index();
  if (group < 2) {
    kernel.math(group);
  } else {
    kernel.load();
  }
}

}  // namespace planted
