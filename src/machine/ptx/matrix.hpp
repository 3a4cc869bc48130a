#pragma once
/// ldmatrix, stmatrix, movmatrix and mma on the GPU.
#include "machine/matrix.hpp"

namespace thresher::machine::matrix {

#define TH_LOAD_TILES(suffix)                                                                         \
  Tiles<count> tiles;                                                                                 \
  if constexpr (count == 1) {                                                                         \
    asm volatile("ldmatrix.sync.aligned.m8n8.x1" suffix ".shared::cta.b16 {%0}, [%1];"                \
                 : "=r"(tiles.word[0])                                                                \
                 : "r"(row.address)                                                                   \
                 : "memory");                                                                         \
  } else if constexpr (count == 2) {                                                                  \
    asm volatile("ldmatrix.sync.aligned.m8n8.x2" suffix ".shared::cta.b16 {%0, %1}, [%2];"            \
                 : "=r"(tiles.word[0]), "=r"(tiles.word[1])                                           \
                 : "r"(row.address)                                                                   \
                 : "memory");                                                                         \
  } else {                                                                                            \
    asm volatile("ldmatrix.sync.aligned.m8n8.x4" suffix ".shared::cta.b16 {%0, %1, %2, %3}, [%4];"    \
                 : "=r"(tiles.word[0]), "=r"(tiles.word[1]), "=r"(tiles.word[2]), "=r"(tiles.word[3]) \
                 : "r"(row.address)                                                                   \
                 : "memory");                                                                         \
  }                                                                                                   \
  return tiles;

#define TH_STORE_TILES(suffix)                                                                                         \
  if constexpr (count == 1) {                                                                                          \
    asm volatile("stmatrix.sync.aligned.m8n8.x1" suffix ".shared::cta.b16 [%0], {%1};" ::"r"(row.address),             \
                 "r"(tiles.word[0])                                                                                    \
                 : "memory");                                                                                          \
  } else if constexpr (count == 2) {                                                                                   \
    asm volatile("stmatrix.sync.aligned.m8n8.x2" suffix ".shared::cta.b16 [%0], {%1, %2};" ::"r"(row.address),         \
                 "r"(tiles.word[0]), "r"(tiles.word[1])                                                                \
                 : "memory");                                                                                          \
  } else {                                                                                                             \
    asm volatile("stmatrix.sync.aligned.m8n8.x4" suffix ".shared::cta.b16 [%0], {%1, %2, %3, %4};" ::"r"(row.address), \
                 "r"(tiles.word[0]), "r"(tiles.word[1]), "r"(tiles.word[2]), "r"(tiles.word[3])                        \
                 : "memory");                                                                                          \
  }

template <int count>
TH_DEVICE Tiles<count> load(Shared<u8> row, Site) {
  static_assert(count == 1 || count == 2 || count == 4);
  TH_LOAD_TILES("")
}

template <int count>
TH_DEVICE Tiles<count> load_transposed(Shared<u8> row, Site) {
  static_assert(count == 1 || count == 2 || count == 4);
  TH_LOAD_TILES(".trans")
}

template <int count>
TH_DEVICE void store(Shared<u8> row, const Tiles<count>& tiles, Site) {
  static_assert(count == 1 || count == 2 || count == 4);
  TH_STORE_TILES("")
}

template <int count>
TH_DEVICE void store_transposed(Shared<u8> row, const Tiles<count>& tiles, Site) {
  static_assert(count == 1 || count == 2 || count == 4);
  TH_STORE_TILES(".trans")
}

TH_DEVICE u32 transpose(u32 word, Site) {
  u32 transposed;
  asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(transposed) : "r"(word));
  return transposed;
}

#define TH_MULTIPLY(type)                                                    \
  asm("mma.sync.aligned.m16n8k16.row.col.f32." type "." type                 \
      ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])           \
      : "r"(a.word[0]), "r"(a.word[1]), "r"(a.word[2]), "r"(a.word[3]), "r"(b.word[0]), "r"(b.word[1]))

template <typename Element>
TH_DEVICE void multiply(float (&sums)[4], const Tiles<4>& a, const Tiles<2>& b, Site) {
  if constexpr (is_same<Element, Half>) {
    TH_MULTIPLY("f16");
  } else {
    static_assert(is_same<Element, BFloat16>);
    TH_MULTIPLY("bf16");
  }
}

#undef TH_MULTIPLY
#undef TH_LOAD_TILES
#undef TH_STORE_TILES

}  // namespace thresher::machine::matrix
