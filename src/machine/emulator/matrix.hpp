#pragma once
/// ldmatrix and stmatrix in the emulator. A thread's row address comes from the warp; the accesses are its own.
#include "machine/emulator/engine/calls.hpp"
#include "machine/emulator/warp.hpp"
#include "machine/matrix.hpp"

namespace thresher::machine::matrix {
namespace emulated {

/// The row addresses of all tiles, from the threads that name them: 16-byte aligned, 8 of a tile.
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

}  // namespace thresher::machine::matrix
