#pragma once
// The copy engine, mbarriers and cp.async.
#include "machine/machine.hpp"

namespace thresher::machine::test {

struct BoxParams {
  TensorMap in;
  TensorMap out;
  Global<u8> image;  // the box as it lies in shared memory
  u32 bytes;         // of the box
  i32 at[5];         // where the box is loaded from
  i32 to[5];         // where it is stored to
};

/// Loads a box, copies its image out byte by byte, stores the box to `to` of `out`. 64 threads.
template <int rank>
TH_KERNEL(64, 1)
boxes(TH_GRID_CONSTANT const BoxParams params) {
  const Shared<u8> box = launch::shared_memory();
  const Barrier full{box.offset_bytes(launch::shared_memory_bytes() - 8).address};
  if (launch::thread_index() == 0) {
    full.init(1);
    fence::barrier_init();
  }
  block::sync();
  At<rank> at{};
  At<rank> to{};
  for (int d = 0; d < rank; ++d) {
    at.coordinate[d] = params.at[d];
    to.coordinate[d] = params.to[d];
  }
  if (launch::thread_index() == 0) {
    tma::prefetch(params.in);
    full.arrive_expect_bytes(params.bytes);
    tma::load(box, params.in, full, at);
  }
  full.wait(Phase{0});
  for (u32 i = launch::thread_index(); i < params.bytes; i += 64) {
    params.image.store(i, box.load(i));
  }
  if (launch::thread_index() == 0) {
    tma::store(params.out, box, to);
    tma::commit();
    tma::wait<0>();
  }
}

struct BulkParams {
  Global<u8> in;
  Global<u8> out;
  u32 bytes;
  u32 pieces;
};

/// in to out in pieces through two buffers, two barriers taking turns with expect and arrive apart. 32 threads.
TH_KERNEL(32, 1) bulk(TH_GRID_CONSTANT const BulkParams params) {
  const Shared<u8> memory = launch::shared_memory();
  const Barrier first{memory.offset_bytes(2 * params.bytes).address};
  const bool leads = launch::thread_index() == 0;
  if (leads) {
    first.init(32);
    first.offset(1).init(1);
    fence::barrier_init();
  }
  block::sync();
  Phase phase{0};
  for (u32 piece = 0; piece < params.pieces; ++piece) {
    const Barrier full = first.offset(piece % 2);
    const Shared<u8> buffer = memory.offset_bytes(piece % 2 * params.bytes);
    if (leads) {
      tma::prefetch_bulk(params.in.offset(static_cast<i64>(piece) * params.bytes), params.bytes);
      full.expect_bytes(params.bytes);
      tma::load_bulk(buffer, params.in.offset(static_cast<i64>(piece) * params.bytes), params.bytes, full);
    }
    if (piece % 2 == 0 || leads) {
      full.arrive();
    }
    full.wait(phase);
    for (u32 byte = launch::thread_index(); byte < params.bytes; byte += 32) {
      params.out.store(static_cast<i64>(piece) * params.bytes + byte, buffer.load(byte));
    }
    warp::sync();
    if (piece % 2 == 1) {
      phase.flip();
    }
  }
}

struct CountParams {
  Global<u32> out;  // [threads]
  u32 rounds;
};

/// Each round, every thread arrives as often as its warp's number plus one; the word grows between rounds. 96 threads.
TH_KERNEL(96, 1) counts(TH_GRID_CONSTANT const CountParams params) {
  const u32 thread = launch::thread_index();
  const auto word = launch::shared_memory().as<u32>();
  const Barrier barrier{launch::shared_memory().offset_bytes(8).address};
  if (thread == 0) {
    word.store(0, 0);
    barrier.init(32 * (1 + 2 + 3));
    fence::barrier_init();
  }
  block::sync();
  Phase phase{0};
  u32 seen = 0;
  for (u32 round = 0; round < params.rounds; ++round) {
    if (round % 3 * 32 == thread) {
      word.store(0, word.load(0) + round);
    }
    barrier.arrive(thread / 32 + 1);
    barrier.wait(phase);
    seen = seen * 3 + word.load(0);
    phase.flip();
    block::sync();
  }
  params.out.store(thread, seen);
}

struct SmallCopyParams {
  Global<u32> in;   // [128 · 4]
  Global<u32> out;  // [128 · 4]
  u32 valid;        // threads below copy, the others fill with zeros
};

/// 16 bytes a thread; the other half of the block reads them. First by groups, then by a barrier.
template <int width>
TH_KERNEL(128, 1)
small_copies(TH_GRID_CONSTANT const SmallCopyParams params) {
  const u32 thread = launch::thread_index();
  const Shared<u8> memory = launch::shared_memory();
  const Barrier done{memory.offset_bytes(128 * 16).address};
  if (thread == 0) {
    done.init(128);
    fence::barrier_init();
  }
  block::sync();
  const bool valid = thread < params.valid;
  const auto copy = [&](u32 words) {
    const Global<u8> from = params.in.offset(static_cast<i64>(thread) * 4).as<u8>();
    const Shared<u8> to = memory.offset_bytes(thread * 16);
    if constexpr (width == 16) {
      static_cast<void>(words);
      async_copy::copy16(to, from, valid);
    } else {
      for (u32 i = 0; i < words; ++i) {
        async_copy::copy4(to.offset_bytes(i * 4), from.offset(i * 4), valid);
      }
    }
  };
  copy(4);
  async_copy::commit();
  async_copy::commit();
  async_copy::wait<1>();
  block::sync();
  const u32 other = thread ^ 64U;
  const auto got = memory.as<Vector<u32, 4>>().load(other);
  block::sync();
  copy(4);
  async_copy::arrive_when_done(done);
  done.wait(Phase{0});
  const auto again = memory.as<Vector<u32, 4>>().load(other);
  for (u32 i = 0; i < 4; ++i) {
    params.out.store(other * 4 + i, got.at[i] == again.at[i] ? got.at[i] : 0xDEADU);
  }
}

}  // namespace thresher::machine::test
