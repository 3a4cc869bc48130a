#pragma once
/// ldmatrix, stmatrix, movmatrix and mma in the emulator. A thread's row address comes from the warp, but the thread
/// makes the accesses itself.
#include <cmath>

#include "machine/emulator/engine/calls.hpp"
#include "machine/emulator/numbers.hpp"
#include "machine/emulator/warp.hpp"
#include "machine/matrix.hpp"

namespace thresher::machine::matrix {
namespace emulated {

/// The row addresses of all tiles, from the threads that provide them: 16-byte aligned, 8 per tile.
template <int count>
const auto* rows(const char* call, Shared<u8> row, Site site) {
  static_assert(count == 1 || count == 2 || count == 4, "1, 2 or 4 tiles");
  if (warp::lane() < 8 * count) {
    emulator::calls::check_matrix_row(row.address, site);
  }
  return emulator::calls::warp_exchange(call, row.address, warp::all_lanes, false, site);
}

inline u16 read(std::uint64_t row, u32 column, Site site) {
  u16 element;
  emulator::calls::shared_read(static_cast<u32>(row) + column * 2, &element, 2, emulator::calls::Space::own, site);
  return element;
}

inline void write(std::uint64_t row, u32 column, u32 element, Site site) {
  const u16 bits = static_cast<u16>(element);
  emulator::calls::shared_write(static_cast<u32>(row) + column * 2, &bits, 2, emulator::calls::Space::own, site);
}

}  // namespace emulated

template <int count>
Tiles<count> load(Shared<u8> row, Site site) {
  const auto* given = emulated::rows<count>("matrix::load", row, site);
  const u32 lane = warp::lane();
  Tiles<count> tiles;
  for (u32 t = 0; t < count; ++t) {
    emulator::calls::shared_read(static_cast<u32>(given[t * 8 + lane / 4]) + lane % 4 * 4, &tiles.word[t], 4,
                                 emulator::calls::Space::own, site);
  }
  return tiles;
}

template <int count>
Tiles<count> load_transposed(Shared<u8> row, Site site) {
  const auto* given = emulated::rows<count>("matrix::load_transposed", row, site);
  const u32 lane = warp::lane();
  Tiles<count> tiles;
  for (u32 t = 0; t < count; ++t) {
    const u32 first = emulated::read(given[t * 8 + lane % 4 * 2], lane / 4, site);
    const u32 second = emulated::read(given[t * 8 + lane % 4 * 2 + 1], lane / 4, site);
    tiles.word[t] = first | second << 16;
  }
  return tiles;
}

template <int count>
void store(Shared<u8> row, const Tiles<count>& tiles, Site site) {
  const auto* given = emulated::rows<count>("matrix::store", row, site);
  const u32 lane = warp::lane();
  for (u32 t = 0; t < count; ++t) {
    emulator::calls::shared_write(static_cast<u32>(given[t * 8 + lane / 4]) + lane % 4 * 4, &tiles.word[t], 4,
                                  emulator::calls::Space::own, site);
  }
}

template <int count>
void store_transposed(Shared<u8> row, const Tiles<count>& tiles, Site site) {
  const auto* given = emulated::rows<count>("matrix::store_transposed", row, site);
  const u32 lane = warp::lane();
  for (u32 t = 0; t < count; ++t) {
    emulated::write(given[t * 8 + lane % 4 * 2], lane / 4, tiles.word[t] & 0xFFFFU, site);
    emulated::write(given[t * 8 + lane % 4 * 2 + 1], lane / 4, tiles.word[t] >> 16, site);
  }
}

inline u32 transpose(u32 word, Site site) {
  const auto* given = warp::emulated::exchange("matrix::transpose", word, site);
  const u32 lane = warp::lane();
  const auto element = [&](u32 row, u32 column) {
    return static_cast<u32>(given[row * 4 + column / 2] >> (column % 2 * 16)) & 0xFFFFU;
  };
  return element(lane % 4 * 2, lane / 4) | element(lane % 4 * 2 + 1, lane / 4) << 16;
}

namespace emulated {

/// One thread's words of both operands, as float32.
struct Fragments {
  float a[8];
  float b[4];
};

}  // namespace emulated

/// In ascending k, as for wgmma.
template <typename Element>
void multiply(float (&sums)[4], const Tiles<4>& a, const Tiles<2>& b, Site site) {
  namespace from = convert::emulated;
  emulated::Fragments own;
  for (u32 word = 0; word < 4; ++word) {
    own.a[word * 2] = from::low<Element>(a.word[word]);
    own.a[word * 2 + 1] = from::high<Element>(a.word[word]);
  }
  for (u32 word = 0; word < 2; ++word) {
    own.b[word * 2] = from::low<Element>(b.word[word]);
    own.b[word * 2 + 1] = from::high<Element>(b.word[word]);
  }
  const auto* given = warp::emulated::exchange("matrix::multiply", reinterpret_cast<std::uintptr_t>(&own), site);
  const emulated::Fragments* of[32];
  for (u32 lane = 0; lane < 32; ++lane) {
    of[lane] = reinterpret_cast<const emulated::Fragments*>(static_cast<std::uintptr_t>(given[lane]));
  }
  const u32 lane = warp::lane();
  for (u32 i = 0; i < 4; ++i) {
    const u32 column = lane % 4 * 2 + i % 2;
    for (u32 k = 0; k < 16; ++k) {
      const float left = of[lane / 4 * 4 + k % 8 / 2]->a[(k / 8 * 2 + i / 2) * 2 + k % 2];
      const float right = of[column * 4 + k % 8 / 2]->b[k / 8 * 2 + k % 2];
      sums[i] += left * right;
    }
  }
  warp::emulated::exchange("matrix::multiply", 0, site);  // others read this thread's words until here
}

}  // namespace thresher::machine::matrix
