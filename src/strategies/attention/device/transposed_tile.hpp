#pragma once
/// FP8 values transposed: wgmma takes FP8 along k alone, and the product with the weights is along the keys.
#include "strategies/attention/device/work.hpp"

namespace thresher::strategies::attention {

/// A tile of FP8 values [keys, columns] as TMA loads it, in boxes of panels of 64 or 128 bytes. The same tile as
/// [columns, keys], in swizzled panels of 128 keys. In 16 neighbouring keys, bytes 4t … 4t+3 of a row are keys 2t,
/// 2t+1, 2t+8 and 2t+9. A thread's scores hold these keys, so their weights are one word of its operand.
///
/// A warp transposes 16 keys of 32 columns by one ldmatrix and one stmatrix, whose elements of 16 bits are two values
/// each. A thread gets two neighbouring columns of four keys, and makes a word of each column. Threads of the upper
/// half of the warp store the odd column first, so that the eight rows of a store are in different banks.
///
/// An address adds, or exclusively ors, all but the lane's part last, so that the lane's part is computed once. The
/// tiles begin at multiples of 1024 bytes.
template <int keys, int columns>
struct TransposedTile {
  static constexpr u32 key_groups = static_cast<u32>(keys) / 16;
  static constexpr u32 panel_bytes = columns < 128 ? 64 : 128;  ///< of FP8 values, as loaded
  static constexpr int panels = columns / static_cast<int>(panel_bytes);
  static constexpr int pieces = static_cast<int>(panel_bytes) / 32;  ///< of a panel
  static constexpr int at_once = columns > 128 ? 1 : 2;
  static_assert(keys % 32 == 0);
  Shared<u8> codes;
  Shared<u8> transposed;

  /// A warp's share of the tile, every `warps`-th group of keys. Rows from `there` on become zeros.
  TH_DEVICE void transpose(u32 own, u32 warps, i32 there) const {
    const u32 lane = warp::lane();
    const u32 row = lane % 8;
    const u32 tile = lane / 8;
    // Tiles of a load: keys 0-7 and 8-15 of 16 columns, then of the next 16.
    const u32 key = tile % 2 * 8 + row;
    const u32 swizzle = panel_bytes == 128 ? row : key / 2 % 4;
    const Shared<u8> from = codes.offset_bytes(key * panel_bytes + ((tile / 2) ^ swizzle) * 16);
    // Row r of a stored tile is what threads 4r … 4r+3 hold: columns 2r and 2r+1 of the 16.
    const u32 column = tile / 2 * 16 + row * 2 + (tile % 2 ^ row / 4);
    const Shared<u8> to = transposed.offset_bytes(column * 128);
    TH_NO_UNROLL
    for (u32 group = own; group < key_groups; group += warps) {
      const u32 panel_of_keys = group / 8 * (static_cast<u32>(columns) * 128);
      transpose_group(from.offset_bytes(group * 16 * panel_bytes),
                      to.offset_bytes(panel_of_keys + ((group % 8) ^ (column % 8)) * 16),
                      there - static_cast<i32>(group * 16));
    }
  }

 private:
  /// The bytes of those of the lane's keys of a group, 2t, 2t+1, 2t+8 and 2t+9, that exist.
  TH_DEVICE static u32 mask(i32 there) {
    const i32 left = there - static_cast<i32>(warp::lane() % 4 * 2);
    return (left > 0 ? 0xFFU : 0U) | (left > 1 ? 0xFF00U : 0U) | (left > 8 ? 0xFF0000U : 0U) |
           (left > 9 ? 0xFF000000U : 0U);
  }

  /// Transposes 16 keys. The whole warp calls it.
  TH_DEVICE static void transpose_group(Shared<u8> from, Shared<u8> to, i32 there) {
    const u32 seen = there >= 16 ? ~0U : mask(there);
    TH_UNROLL
    for (int panel = 0; panel < panels; ++panel) {
      TH_UNROLL
      for (int first = 0; first < pieces; first += at_once) {
        transpose_pieces(from.offset_bytes(static_cast<u32>(panel * keys) * panel_bytes), first,
                         to.offset_bytes(static_cast<u32>(panel) * panel_bytes * 128), seen);
      }
    }
  }

  /// Pieces of 32 columns each, a few at once: they take registers.
  TH_DEVICE static void transpose_pieces(Shared<u8> from, int first, Shared<u8> to, u32 seen) {
    constexpr u32 even_bytes = 0x6420;
    constexpr u32 odd_bytes = 0x7531;
    const u32 own_bytes = warp::lane() >= 16 ? odd_bytes : even_bytes;
    matrix::Tiles<4> tiles[at_once];
    TH_UNROLL
    for (int i = 0; i < at_once; ++i) {
      const Shared<u8> piece{from.address ^ (static_cast<u32>(first + i) * 32)};
      tiles[i] = matrix::load_transposed<4>(piece);
    }
    TH_UNROLL
    for (int i = 0; i < at_once; ++i) {
      // Two neighbouring columns of four keys become a word of each column.
      matrix::Tiles<4> transposed_words;
      TH_UNROLL
      for (int word = 0; word < 4; ++word) {
        const u32 bytes = word % 2 == 0 ? own_bytes : own_bytes ^ even_bytes ^ odd_bytes;
        transposed_words.word[word] =
            bits::permute(tiles[i].word[word / 2 * 2], tiles[i].word[word / 2 * 2 + 1], bytes) & seen;
      }
      matrix::store<4>(to.offset_bytes(static_cast<u32>(first + i) * 32 * 128), transposed_words);
    }
  }
};

}  // namespace thresher::strategies::attention
