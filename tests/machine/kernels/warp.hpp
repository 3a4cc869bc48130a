#pragma once
// What the threads of a warp do together, and what block barriers order.
#include "machine/machine.hpp"

namespace thresher::machine::test {

struct WarpParams {
  Global<u32> in;   // [64]
  Global<u32> out;  // [64 · 14]
  u32 argument;     // source lane, mask or distance
};

TH_KERNEL(64, 1) exchanges(TH_GRID_CONSTANT const WarpParams params) {
  const u32 thread = launch::thread_index();
  const u32 value = params.in.load(thread);
  const Global<u32> mine = params.out.offset(static_cast<i64>(thread) * 14);
  mine.store(0, warp::shuffle(value, params.argument));
  mine.store(1, warp::shuffle_xor(value, params.argument));
  mine.store(2, warp::shuffle_up(value, params.argument));
  mine.store(3, warp::shuffle(value, 31 - warp::lane()));
  mine.store(4, convert::float_bits(warp::shuffle_xor(convert::bits_float(value), params.argument)));
  mine.store(5, static_cast<u32>(warp::shuffle(static_cast<i32>(value), warp::lane() + params.argument)));
  mine.store(6, warp::ballot((value & 1U) != 0));
  mine.store(7, warp::any(value == params.argument) ? 1 : 0);
  mine.store(8, warp::all(value < 1000) ? 1 : 0);
  mine.store(9, warp::elect() ? 1 : 0);
  u32 low = 0;
  if (warp::lane() < 16) {
    warp::sync(0xFFFFU);
    low = 1;
  }
  warp::sync();
  mine.store(10, low);
  mine.store(11, warp::elect() ? 1 : 0);
  mine.store(12, warp::reduce(value, [](u32 a, u32 b) { return a > b ? a : b; }));
  mine.store(13, warp::reduce(value, [](u32 own, u32 other) { return own * 3 + other; }));
}

struct MatrixParams {
  Global<u16> in;    // [rows of 8: 8·count]
  Global<u32> out;   // [32 · count]
  Global<u16> back;  // [8·count rows of 8]
};

/// Rows lie in shared memory in reverse order, each 48 bytes from the next.
template <int count, bool transposed>
TH_KERNEL(32, 1)
tiles(TH_GRID_CONSTANT const MatrixParams params) {
  const u32 lane = warp::lane();
  const Shared<u8> memory = launch::shared_memory();
  const auto row_start = [&](u32 row) { return memory.offset_bytes((8 * count - 1 - row) * 48); };
  for (u32 i = lane; i < 64 * count; i += 32) {
    row_start(i / 8).template as<u16>().store(i % 8, params.in.load(i));
  }
  warp::sync();
  const Shared<u8> row = row_start(lane % (8 * count));
  matrix::Tiles<count> loaded{};
  if constexpr (transposed) {
    loaded = matrix::load_transposed<count>(row);
  } else {
    loaded = matrix::load<count>(row);
  }
  for (u32 t = 0; t < count; ++t) {
    params.out.store(lane * count + t, loaded.word[t]);
    loaded.word[t] ^= 0x00010001U;
  }
  warp::sync();
  if constexpr (transposed) {
    matrix::store_transposed<count>(row, loaded);
  } else {
    matrix::store<count>(row, loaded);
  }
  warp::sync();
  for (u32 i = lane; i < 64 * count; i += 32) {
    params.back.store(i, row_start(i / 8).template as<u16>().load(i % 8));
  }
}

struct WarpProductParams {
  Global<u16> a;      // [16 rows of 16]
  Global<u16> b;      // [16 rows of 8]
  Global<float> d;    // [16 rows of 8], added to
  Global<u32> words;  // [32] of B's upper tile, turned round
};

/// d += a·b, where b comes row by row and is transposed in registers.
template <typename Element>
TH_KERNEL(32, 1)
warp_product(TH_GRID_CONSTANT const WarpProductParams params) {
  const u32 row = warp::lane() / 4;
  const u32 column = warp::lane() % 4 * 2;
  const auto pair = [&](Global<u16> from, u32 at_row, u32 at_column, u32 columns) {
    return from.load(at_row * columns + at_column) | static_cast<u32>(from.load(at_row * columns + at_column + 1))
                                                         << 16;
  };
  const matrix::Tiles<4> a{{pair(params.a, row, column, 16), pair(params.a, row + 8, column, 16),
                            pair(params.a, row, column + 8, 16), pair(params.a, row + 8, column + 8, 16)}};
  const u32 upper = matrix::transpose(pair(params.b, row, column, 8));
  const matrix::Tiles<2> b{{upper, matrix::transpose(pair(params.b, row + 8, column, 8))}};
  params.words.store(warp::lane(), upper);
  float sums[4];
  for (u32 i = 0; i < 4; ++i) {
    sums[i] = params.d.load((row + i / 2 * 8) * 8 + column + i % 2);
  }
  matrix::multiply<Element>(sums, a, b);
  for (u32 i = 0; i < 4; ++i) {
    params.d.store((row + i / 2 * 8) * 8 + column + i % 2, sums[i]);
  }
}

struct TurnParams {
  Global<u32> out;  // [rounds]
  u32 rounds;
};

/// Two halves of a block alternate by named barriers: the word grows by 1 in even turns and doubles in odd ones.
TH_KERNEL(192, 1) turns(TH_GRID_CONSTANT const TurnParams params) {
  const u32 thread = launch::thread_index();
  const u32 half = thread / 96;
  const auto word = launch::shared_memory().as<u32>();
  if (thread == 0) {
    word.store(0, 1);
  }
  block::sync();
  if (half == 1) {
    named_barrier::arrive(1, 192);
  }
  for (u32 round = 0; round < params.rounds; ++round) {
    named_barrier::sync(1 + half, 192);
    if (thread % 96 == 0) {
      const u32 value = word.load(0);
      word.store(0, half == 0 ? value + 1 : value * 2);
      if (half == 1) {
        params.out.store(round, value * 2);
      }
    }
    if (half == 0 || round + 1 < params.rounds) {
      named_barrier::arrive(2 - half, 192);
    }
  }
}

struct RegisterParams {
  Global<u32> out;  // [640]
};

/// Registers go from the last warpgroup to the other four; all still compute.
TH_KERNEL(640, 1) reallocation(TH_GRID_CONSTANT const RegisterParams params) {
  if (warp::group_index() == 4) {
    registers::decrease<24>();
  } else {
    registers::increase<112>();
  }
  params.out.store(launch::thread_index(), launch::thread_index() * 3);
}

}  // namespace thresher::machine::test
