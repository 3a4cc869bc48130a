#pragma once
// Ordinary accesses of every width, atomics, release and acquire, and where a thread stands.
#include "machine/machine.hpp"

namespace thresher::machine::test {

struct CopyParams {
  Global<u8> in;
  Global<u8> out;
  u32 count;  // of Words
};

/// out[i] = in[i], by way of shared memory, each Word in one access. 96 threads.
template <typename Word>
TH_KERNEL(96, 1)
copy_words(TH_GRID_CONSTANT const CopyParams params) {
  const auto shared = launch::shared_memory().as<Word>();
  const u32 thread = launch::thread_index();
  const Global<Word> in = params.in.as<Word>();
  const Global<Word> out = params.out.as<Word>();
  for (u32 i = thread; i < params.count; i += launch::thread_count()) {
    if constexpr (sizeof(Word) >= 4) {
      shared.store(i, i % 2 == 0 ? in.load(i) : in.load_read_only(i, CacheHint::evict_first));
    } else {
      shared.store(i, in.load(i));
    }
  }
  block::sync();
  for (u32 i = thread; i < params.count; i += launch::thread_count()) {
    const Word word = shared.load(params.count - 1 - i);
    const i64 place = static_cast<i64>(params.count - 1 - i);
    if (i % 3 == 0) {
      out.offset(place + 5).store(-5, word);
    } else {
      out.store_streaming(place, word);
    }
  }
}

struct AtomicParams {
  Global<u32> words;     // [4]
  Global<u64> longs;     // [2]
  Global<float> floats;  // [2]
  Global<u32> out;       // [2]
};

/// 70 threads, several blocks.
TH_KERNEL(70, 1) atomics(TH_GRID_CONSTANT const AtomicParams params) {
  const u32 thread = launch::thread_index();
  const auto shared = launch::shared_memory().as<u32>();
  const auto shared_float = launch::shared_memory().offset(4).as<float>();
  if (thread == 0) {
    shared.store(0, 0);
    shared_float.store(0, 0);
  }
  block::sync();
  shared.atomic_add(0, thread);
  shared_float.atomic_add(0, 0.5F);
  params.words.atomic_add(0, 1);
  params.words.reduce_add(1, thread);
  params.longs.atomic_add(0, 0x100000001ULL);
  params.longs.reduce_add(1, 3);
  params.floats.atomic_add(0, 1.0F);
  params.floats.reduce_add(1, 0.25F);
  if (params.words.atomic_compare_exchange(2, 7, 100 + thread) == 7) {
    params.words.atomic_exchange(3, 1);
  }
  block::sync();
  if (thread == 0) {
    params.out.atomic_add(0, shared.load(0));
    params.out.atomic_add(1, static_cast<u32>(shared_float.load(0)));
  }
}

struct HandParams {
  Global<u32> data;     // [blocks · 32]
  Global<u32> arrived;  // [1]
  Global<u32> sum;      // [1]
};

/// The last block to arrive sums what all wrote. 32 threads.
TH_KERNEL(32, 1) last_block(TH_GRID_CONSTANT const HandParams params) {
  const u32 thread = launch::thread_index();
  const u32 block = launch::block_index().x + launch::block_index().y * launch::block_count().x;
  const u32 blocks = launch::block_count().x * launch::block_count().y;
  params.data.store(block * 32 + thread, block * 1000 + thread);
  warp::sync();
  u32 before = 0;
  if (thread == 0) {
    before = params.arrived.atomic_add_acq_rel(0, 1);
  }
  warp::sync();
  before = warp::shuffle(before, 0);
  if (before + 1 != blocks) {
    return;
  }
  u32 sum = 0;
  for (u32 i = thread; i < blocks * 32; i += 32) {
    sum += params.data.load(i);
  }
  for (u32 distance = 16; distance > 0; distance /= 2) {
    sum += warp::shuffle_xor(sum, distance);
  }
  if (thread == 0) {
    params.sum.store(0, sum);
  }
}

struct FlagParams {
  Global<u32> flag;  // [1]
  Global<u32> data;  // [1]
  Global<u32> out;   // [1]
};

/// Thread 0 releases, thread 40 acquires: two warps of one block.
TH_KERNEL(64, 1) release_acquire(TH_GRID_CONSTANT const FlagParams params) {
  if (launch::thread_index() == 0) {
    params.data.store(0, 4711);
    params.flag.store_release(0, 1);
  }
  if (launch::thread_index() == 40) {
    while (params.flag.load_acquire(0) == 0) {
    }
    params.out.store(0, params.data.load(0));
  }
}

struct PlaceParams {
  Global<u32> out;  // [blocks · threads · 4]
};

TH_KERNEL(96, 1) places(TH_GRID_CONSTANT const PlaceParams params) {
  const auto at = launch::block_index();
  const auto count = launch::block_count();
  const u32 block = (at.z * count.y + at.y) * count.x + at.x;
  const Global<u32> mine =
      params.out.offset((static_cast<i64>(block) * launch::thread_count() + launch::thread_index()) * 4);
  mine.store(0, at.x | at.y << 8 | at.z << 16);
  mine.store(1, launch::thread_index() | warp::lane() << 8 | warp::index() << 16 | warp::group_index() << 24);
  mine.store(2, launch::shared_memory_bytes());
  const u64 before = clock::cycles();
  mine.store(3, clock::cycles() >= before ? 1 : 0);
}

}  // namespace thresher::machine::test
