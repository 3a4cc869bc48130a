#pragma once
// Threads pass values to each other through shared memory, warps and named barriers; out[i] is the value of thread
// 255 - i in round `rounds`.
#include "machine/machine.hpp"

namespace planted {

using namespace thresher::machine;

enum class ExchangeDefect {
  none,
  no_sync_before_read,       // another thread's value is read without a barrier
  no_sync_before_reuse,      // and overwritten before everyone has read
  two_writers,               // threads 0 and 1 write the same place
  no_warp_sync,              // lanes of one warp trust that they run in step
  warp_sync_leaves_one_out,  // the mask lacks a lane whose value is read
  shuffle_in_branch,         // only half of a warp comes
  different_shuffles,        // the halves of a warp are in different calls
  elect_in_branch,           // one warp's elect is behind a condition on the lane
  index_in_branch,           // one lane alone asks which warp it is in, which is a shuffle
  sync_in_branch,            // one thread ends before the block's barrier
  named_count_too_high,      // waits for 32 threads more than come
  named_counts_differ,       // the sides count differently
  named_without_arrival,     // one side does not arrive
  uninitialised_shared,      // reads a place that nobody writes
  beyond_shared,             // reads past the block's shared memory
  misaligned_shared,         // a vector access at half its alignment
  spins,                     // spins for ever
  beyond_global,             // writes past the output
  beyond_global_read,        // reads past the input
  misaligned_global,         // a vector access at half its alignment
  writes_input,
  reads_output,               // reads an output before writing it
  reads_only_what_it_writes,  // read-only path on bytes that the kernel writes
  blocks_race,                // two blocks write the same bytes
  partial_overlap,            // a 2-byte store into a 4-byte word that another thread reads
  expectation_fails,
  throws,
};

struct ExchangeParams {
  Global<u32> in;   // [256]
  Global<u32> out;  // [256] a block
  u32 rounds;
  ExchangeDefect defect;
};

inline constexpr u32 exchange_shared_bytes = 2048;

struct ExchangeKernel {
  const ExchangeParams& params;
  u32 thread;
  Shared<u32> values;

  TH_DEVICE bool is(ExchangeDefect wanted) const { return params.defect == wanted; }

  TH_DEVICE u32 rounds(u32 value) const {
    for (u32 round = 0; round < params.rounds; ++round) {
      const u32 place = is(ExchangeDefect::two_writers) && thread == 1 ? 0 : thread;
      if (is(ExchangeDefect::partial_overlap) && thread == 7) {
        values.as<u16>().store(place * 2, static_cast<u16>(value));
        block::sync();
        values.as<u16>().store(place * 2 + 1, static_cast<u16>(value >> 16));
      } else {
        values.store(place, value);
        if (!is(ExchangeDefect::no_sync_before_read)) {
          block::sync();
        }
      }
      value = values.load(255 - thread) + 1;
      if (!is(ExchangeDefect::no_sync_before_reuse)) {
        block::sync();
      }
    }
    return value;
  }

  TH_DEVICE u32 in_warp(u32 value) const {
    const u32 lane = warp::lane();
    values.store(thread, value);
    if (is(ExchangeDefect::warp_sync_leaves_one_out)) {
      if (lane != 5) {
        warp::sync(warp::all_lanes & ~(1U << 5));
      }
    } else if (!is(ExchangeDefect::no_warp_sync)) {
      warp::sync();
    }
    value = values.load(thread ^ 1U);
    warp::sync();
    if (is(ExchangeDefect::shuffle_in_branch)) {
      return lane < 16 ? warp::shuffle_xor(value, 1) : value;
    }
    if (is(ExchangeDefect::different_shuffles) && lane < 16) {
      return warp::shuffle_xor(value, 1);
    }
    if (is(ExchangeDefect::elect_in_branch)) {
      if (lane > 3 && warp::elect()) {
        values.store(600 / 4, 1);
      }
    }
    if (is(ExchangeDefect::index_in_branch) && lane == 0) {
      values.store(600 / 4 + warp::index(), 1);
    }
    return warp::shuffle_xor(value, 1);
  }

  /// Warps 0-3 hand a word to warps 4-7 by named barrier 1, and get it back by barrier 2.
  TH_DEVICE u32 by_name(u32 value) const {
    const u32 all = is(ExchangeDefect::named_count_too_high) ? 288 : 256;
    const u32 other = is(ExchangeDefect::named_counts_differ) ? 224 : all;
    if (thread < 128) {
      values.store(thread, value);
      if (!is(ExchangeDefect::named_without_arrival)) {
        named_barrier::arrive(1, all);
      }
      named_barrier::sync(2, 256);
      return values.load(thread);
    }
    named_barrier::sync(1, other);
    values.store(thread - 128, values.load(thread - 128) + 1);
    named_barrier::arrive(2, 256);
    return value + 1;
  }

  TH_DEVICE void accesses() const {
    if (is(ExchangeDefect::uninitialised_shared) && thread == 3) {
      debug::expect(values.load(500) != 1, "a value");
    }
    if (is(ExchangeDefect::beyond_shared)) {
      values.store(256 + thread, 0);
      values.store(257 + thread, 0);
    }
    if (is(ExchangeDefect::misaligned_shared)) {
      values.offset(256 + 1).as<Vector<u32, 2>>().store(0, {});
    }
    if (is(ExchangeDefect::spins)) {
      while (values.load(thread % 128) != 1) {
      }
    }
    if (is(ExchangeDefect::beyond_global)) {
      params.out.store(thread + 1 + launch::block_index().x * 256, 0);
    }
    if (is(ExchangeDefect::beyond_global_read)) {
      debug::expect(params.in.load(-1) != 77, "a value");
    }
    if (is(ExchangeDefect::misaligned_global)) {
      params.out.offset(1).as<Vector<u32, 2>>().store(0, {});
    }
    if (is(ExchangeDefect::writes_input) && thread == 9) {
      params.in.store(0, 1);
    }
    if (is(ExchangeDefect::reads_output)) {
      debug::expect(params.out.load(thread) != 77, "a value");
    }
    if (is(ExchangeDefect::reads_only_what_it_writes)) {
      params.out.store(thread, 5);
      block::sync();
      debug::expect(params.out.load_read_only(thread ^ 1U) == 5, "a value");
    }
    debug::expect(!is(ExchangeDefect::expectation_fails) || thread != 17, "thread 17 is content");
    if (is(ExchangeDefect::throws) && thread == 31) {
      throw 42;
    }
  }
};

TH_KERNEL(256, 1) exchange(TH_GRID_CONSTANT const ExchangeParams params) {
  const u32 thread = launch::thread_index();
  const ExchangeKernel kernel{params, thread, launch::shared_memory().as<u32>()};
  if (kernel.is(ExchangeDefect::sync_in_branch) && thread == 100) {
    return;
  }
  u32 value = kernel.rounds(params.in.load_read_only(thread));
  value = kernel.in_warp(value);
  block::sync();
  value = kernel.by_name(value);
  kernel.accesses();
  const u32 block = kernel.is(ExchangeDefect::blocks_race) ? 0 : launch::block_index().x;
  params.out.store(block * 256 + thread, value);
}

}  // namespace planted
