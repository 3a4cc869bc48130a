#pragma once
/// Warp-wide transfers of 8×8 tiles of 16-bit elements between shared memory and fragments.
#include "machine/shared.hpp"

namespace thresher::machine::matrix {

/// Thread t gets row t/4, columns 2(t%4) and +1 of each tile in one word; transposed, column t/4, rows 2(t%4) and +1.
/// `row` is the 16-byte aligned address of one row: thread t names row t%8 of tile t/8 (threads beyond 8·count are
/// ignored).
template <int count>
struct Tiles {
  u32 word[count];
};

/// count = 1, 2 or 4. All 32 threads of a warp together.
template <int count>
TH_DEVICE Tiles<count> load(Shared<u8> row, Site site = here());
template <int count>
TH_DEVICE Tiles<count> load_transposed(Shared<u8> row, Site site = here());
template <int count>
TH_DEVICE void store(Shared<u8> row, const Tiles<count>& tiles, Site site = here());
template <int count>
TH_DEVICE void store_transposed(Shared<u8> row, const Tiles<count>& tiles, Site site = here());

}  // namespace thresher::machine::matrix

#if TH_GPU
#include "machine/ptx/matrix.hpp"
#else
#include "machine/emulator/matrix.hpp"
#endif
