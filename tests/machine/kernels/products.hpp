#pragma once
// wgmma: one multiply of every kind, its operands laid out in shared memory by ordinary stores.
#include "machine/machine.hpp"

namespace thresher::machine::test {

struct ProductParams {
  Global<u8> a;       // the A tile's image in shared memory
  Global<u8> b;       // the B tile's
  Global<u32> words;  // [128 · 4] fragment words, when A comes from registers
  Global<float> start;
  Global<float> d;  // [64 · columns]
  u32 a_bytes;
  u32 b_bytes;
  u32 a_leading, a_stride;
  u32 b_leading, b_stride;
  u32 rounds;  // how often the product is added
};

using wgmma::Major;

enum class Source : u8 { shared, registers };

template <typename Element, int columns, Source source, Swizzle a_swizzle, Major a_major, Swizzle b_swizzle,
          Major b_major>
TH_KERNEL(128, 1)
product(TH_GRID_CONSTANT const ProductParams params) {
  const u32 thread = launch::thread_index();
  const Shared<u8> a = launch::shared_memory();
  const Shared<u8> b = a.offset_bytes((params.a_bytes + 1023) / 1024 * 1024);
  for (u32 i = thread; i < params.a_bytes / 4; i += 128) {
    a.as<u32>().store(i, params.a.as<u32>().load(i));
  }
  for (u32 i = thread; i < params.b_bytes / 4; i += 128) {
    b.as<u32>().store(i, params.b.as<u32>().load(i));
  }
  fence::async_shared();
  block::sync();
  Accumulators<columns> sums;
  for (int i = 0; i < Accumulators<columns>::elements; ++i) {
    const u32 element = static_cast<u32>(i);
    sums.set(i, params.start.load(fragment::row(thread, element) * columns + fragment::column(thread, element)));
  }
  wgmma::Fragment words{};
  for (int i = 0; i < 4; ++i) {
    words.word[i] = params.words.load(static_cast<i64>(thread) * 4 + i);
  }
  wgmma::settle(sums);
  wgmma::settle(words);
  wgmma::fence();
  for (u32 round = 0; round < params.rounds; ++round) {
    const auto right = wgmma::descriptor<b_swizzle>(b, params.b_leading, params.b_stride);
    if constexpr (source == Source::shared) {
      const auto left = wgmma::descriptor<a_swizzle>(a, params.a_leading, params.a_stride);
      wgmma::multiply<Element, a_major, b_major>(sums, left, right, true);
    } else {
      wgmma::multiply<Element, b_major>(sums, words, right, true);
    }
  }
  wgmma::commit();
  wgmma::wait<0>();
  wgmma::settle(sums);
  for (int i = 0; i < Accumulators<columns>::elements; ++i) {
    const u32 element = static_cast<u32>(i);
    params.d.store(fragment::row(thread, element) * columns + fragment::column(thread, element), sums.get(i));
  }
}

}  // namespace thresher::machine::test
