#pragma once
/// How `pack` arranges NVFP4 weights for the exact path: 4.5 bits a weight stay 4.5 bits.
///
/// A block holds 32 gate rows and the 32 up rows of the same outputs × 64 along K. They are the 64 rows of a wgmma A
/// operand that 128 threads hold in registers. Fragment row 16w + r is gate row 8w + r, and row 16w + 8 + r is up row
/// 8w + r (w = warp, r = lane/4). One thread therefore holds gate and up of the same output. A block is 2304 contiguous
/// bytes:
///
///   `values`  128 threads × 4 words. Word s belongs to k-step s (16 along K) and holds 8 values, those of A-fragment
///             words 0…3 (pairs p). Pair p of thread (w, lane) is row gate (p even) or up (p odd). Its columns are 16s
///             + 8(p/2) + 2(lane%4) + {0,1}. The first value of a pair lies in the word's low half, the second in its
///             high half.
///   `scales`  32 (w, r) × 8 bytes. For k-step s byte 2s is gate's, byte 2s + 1 up's.
///
/// Inside a half, the value (sign, 3 magnitude bits) of pair p lies where few instructions bring it to bit 15 and to
/// fp16's bits 11:9 or bf16's 8:6. Pair 0 has 14 and 11:9. Pair 1 has 15 and 8:6, which bf16 takes as they are. Pair 2
/// has 12 and 5:3, which bf16 takes 3 further left. Pair 3 has 13 and 2:0.
///
/// Blocks lie K first: block (output group g, k-block j) is number g·⌈K/64⌉ + j. Outputs beyond N and columns beyond K
/// are zero codes with zero scales.
///
/// A scale's sign is moved into its 16 codes. Its byte is bits 14:7 of the scale in fp16, where a magnitude of e4m3 has
/// no others; NaN is 0xFF. Codes of a scale that is zero have no magnitude.
#include "strategies/gemm/device/words.hpp"

namespace thresher::strategies::gemm::wgmma_dequant {

inline constexpr u32 block_outputs = 32;
inline constexpr u32 block_k = 64;
inline constexpr u32 k_block_multiple = 4;
inline constexpr u32 steps = 4;  ///< k-steps of 16 in a block
inline constexpr u32 threads = 128;
inline constexpr u32 block_value_bytes = threads * steps * 4;
inline constexpr u32 block_scale_bytes = 32 * steps * 2;
inline constexpr u32 block_bytes = block_value_bytes + block_scale_bytes;

TH_DEVICE constexpr u32 k_blocks(u32 k) {
  return (k + block_k * k_block_multiple - 1) / (block_k * k_block_multiple) * k_block_multiple;
}
TH_DEVICE constexpr u32 output_groups(u32 n) { return (n + block_outputs - 1) / block_outputs; }

/// Bits of pair p in a half.
TH_DEVICE constexpr u32 sign_bit(u32 pair) { return pair == 0 ? 14 : pair == 1 ? 15 : pair == 2 ? 12 : 13; }
TH_DEVICE constexpr u32 magnitude_bit(u32 pair) { return pair == 0 ? 9 : pair == 1 ? 6 : pair == 2 ? 3 : 0; }

/// A 4-bit code placed for pair p.
TH_DEVICE constexpr u16 place(u32 code, u32 pair) {
  return static_cast<u16>((code & 7U) << magnitude_bit(pair) | (code >> 3 & 1U) << sign_bit(pair));
}

/// Which weight a pair's first code is, within the block.
struct Source {
  bool up;
  u32 output;  ///< 0…31
  u32 column;  ///< 0…62, even
};
TH_DEVICE constexpr Source source(u32 thread, u32 step, u32 pair) {
  const u32 lane = thread % 32;
  return {pair % 2 == 1, thread / 32 * 8 + lane / 4, step * 16 + pair / 2 * 8 + lane % 4 * 2};
}

/// Byte of the scale of one output (0…31) and k-step within the block's scales.
TH_DEVICE constexpr u32 scale_byte(bool up, u32 output, u32 step) { return output * 8 + step * 2 + (up ? 1 : 0); }

/// Results are value·scale times this.
inline constexpr float exact_result_scale = 0x1p-14F;

}  // namespace thresher::strategies::gemm::wgmma_dequant
