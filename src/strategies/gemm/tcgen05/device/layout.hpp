#pragma once
/// How operands lie in stages and in memory for tcgen05. Pure functions of extents, for both sides.
///
/// Packed NVFP4 weights are row tiles of 128 rows, those of 64 outputs. Row 32w + 16s + 8u + r is output 16w + 8s + r
/// of the gate (u = 0) or of the up (u = 1). A warp's fragment of 16 lanes then holds gate over up of 8 outputs, and
/// its two fragments 16 neighbouring outputs.
///
/// A row tile is blocks of 256 along K, one behind the other. Tile t's block j is number t·k_steps + j.
///   `codes`   128 rows of 128 bytes, two codes per byte, the low nibble first. Each has its scale's sign.
///   `scales`  4 blocks of 128 rows by 4 scales (NVFP4's blocked layout), 512 bytes each, in the same order of rows.
/// All codes come first, then all scales. Outputs beyond N and columns beyond K are zero codes with zero scales.
///
/// Token scales are blocks of 128 rows by 4 too, blocks along K first; a tile of tokens starts a group of 128 rows.
#include "strategies/gemm/device/words.hpp"

namespace thresher::strategies::gemm::tcgen05 {

/// A block has 128 rows of weights, and a stage 128 bytes along K of each row. An instruction takes a quarter of them.
inline constexpr u32 block_rows = 128;
inline constexpr u32 slot_row_bytes = 128;
inline constexpr u32 slot_products = 4;
inline constexpr u32 product_row_bytes = slot_row_bytes / slot_products;
inline constexpr u32 weight_block_bytes = block_rows * slot_row_bytes;

namespace block_scaled {

inline constexpr u32 tile_rows_outputs = 64;
inline constexpr u32 slot_k = 2 * slot_row_bytes;
inline constexpr u32 product_k = slot_k / slot_products;  ///< of one instruction
inline constexpr u32 scale_block_bytes = 512;
inline constexpr u32 scale_block_columns = 4;  ///< of tensor memory
inline constexpr u32 slot_scale_blocks = slot_products;
inline constexpr u32 weight_scale_bytes = slot_scale_blocks * scale_block_bytes;

/// Which weight a row of a tile is.
struct Source {
  bool up;
  u32 output;  ///< 0 … 63
};
TH_DEVICE constexpr Source source(u32 row) { return {row / 8 % 2 == 1, row / 16 * 8 + row % 8}; }

TH_DEVICE constexpr u32 k_steps(u32 k) { return (k + slot_k - 1) / slot_k; }
TH_DEVICE constexpr u32 row_tiles(u32 n) { return (n + tile_rows_outputs - 1) / tile_rows_outputs; }
TH_DEVICE constexpr u64 packed_code_bytes(u32 n, u32 k) { return u64{row_tiles(n)} * k_steps(k) * weight_block_bytes; }
TH_DEVICE constexpr u64 packed_scale_bytes(u32 n, u32 k) { return u64{row_tiles(n)} * k_steps(k) * weight_scale_bytes; }

/// Groups of 128 rows that the scales of `rows` tokens take.
TH_DEVICE constexpr u32 scale_groups(u32 rows) { return (rows + 127) / 128; }
TH_DEVICE constexpr u32 scale_k_blocks(u32 k) { return (k + product_k - 1) / product_k; }
/// Blocks of a slot's token scales along K that each of `blocks` blocks brings, for all of them.
TH_DEVICE constexpr u32 loaded_scale_blocks(u32 blocks) { return slot_scale_blocks / blocks; }
/// Byte of the scale of a row and a column (of 16 along K) in a block.
TH_DEVICE constexpr u32 scale_byte(u32 row, u32 column) { return row % 32 * 16 + row % 128 / 32 * 4 + column % 4; }

/// Token tiles of `block_tokens` start at groups of 128 rows in the blocked layout of all m tokens, and no padding of
/// its columns is read. Scales in that layout are then read where they lie.
TH_DEVICE constexpr bool blocked_scales_fit(u32 m, u32 k, u32 block_tokens) {
  return k % product_k == 0 && (block_tokens % 128 == 0 || m <= block_tokens);
}

/// Tokens as `prepare_tokens` leaves them: rows of codes without gaps, zeros beyond k.
TH_DEVICE constexpr u64 prepared_row_bytes(u32 k) { return (u64{k} / 2 + 15) / 16 * 16; }
/// Scale groups of all token tiles.
TH_DEVICE constexpr u32 prepared_scale_groups(u32 m, u32 block_tokens) {
  return (m + block_tokens - 1) / block_tokens * scale_groups(block_tokens);
}
TH_DEVICE constexpr u64 prepared_scale_bytes(u32 m, u32 k, u32 block_tokens) {
  return u64{prepared_scale_groups(m, block_tokens)} * scale_k_blocks(k) * scale_block_bytes;
}

}  // namespace block_scaled
}  // namespace thresher::strategies::gemm::tcgen05
