#pragma once
/// Warp-wide transfers of 8×8 tiles of 16-bit elements between shared memory and fragments, and products of them.
#include "machine/shared.hpp"

namespace thresher::machine::matrix {

/// Thread t gets row t/4, columns 2(t%4) and +1 of each tile in one word; transposed, column t/4, rows 2(t%4) and +1.
/// `row` is the 16-byte aligned address of one row: thread t provides row t%8 of tile t/8 (threads beyond 8·count are
/// ignored).
template <int count>
struct Tiles {
  u32 word[count];
};

/// count = 1, 2 or 4. All 32 threads of a warp call it together.
template <int count>
TH_DEVICE Tiles<count> load(Shared<u8> row, Site site = here());
template <int count>
TH_DEVICE Tiles<count> load_transposed(Shared<u8> row, Site site = here());
template <int count>
TH_DEVICE void store(Shared<u8> row, const Tiles<count>& tiles, Site site = here());
template <int count>
TH_DEVICE void store_transposed(Shared<u8> row, const Tiles<count>& tiles, Site site = here());

/// Transposes one tile that a warp holds.
TH_DEVICE u32 transpose(u32 word, Site site = here());

/// sums += A·B of one warp, float32 accumulation of 16-bit elements (Half or BFloat16). A is 16×16: the tiles of rows
/// 0-7 and 8-15 of columns 0-7, then of columns 8-15. B is 16×8, held like its transpose: thread t has column t/4, rows
/// 2(t%4) and +1 of rows 0-7 in the first word, of rows 8-15 in the second. Sums are 16×8: thread t has row t/4,
/// columns 2(t%4) and +1 in the first two, row t/4 + 8 in the others. All 32 threads call it together.
template <typename Element>
TH_DEVICE void multiply(float (&sums)[4], const Tiles<4>& a, const Tiles<2>& b, Site site = here());

}  // namespace thresher::machine::matrix

#if TH_GPU
#include "machine/ptx/matrix.hpp"
#else
#include "machine/emulator/matrix.hpp"
#endif
