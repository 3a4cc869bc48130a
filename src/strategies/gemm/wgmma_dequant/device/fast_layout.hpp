#pragma once
/// How `pack` arranges NVFP4 weights for the fast path: 4.5 bits a weight, and one float32 for each row.
///
/// Value × scale is rounded once to e4m3. A row's scales are first multiplied by a power of two, 2^e. It is chosen for
/// that row so that its largest scale has a code in 98…105. Six times that is at most 448, so nothing saturates. The
/// row's factor 2^-e (NaN when the row has a NaN scale, whose every product is NaN) multiplies the row's sums.
///
/// A scale with code c ≥ 16 has its products with 0.5, 1, 1.5, 2, 3, 4 and 6 as e4m3 codes. They are c−8, c, t, c+8,
/// t+8, c+16 and t+16. Here t, the rounded 1.5·scale, is c+4 or c+5. A byte of scale is c, and its top bit says which
/// of the two t is. Groups whose scale is smaller than code 16, below 2^-11 of the row's largest, are quantized again
/// by `pack`, with code 16. An element's error is then at most 2^-5, some 1/6000 of six times the row's largest scale.
///
/// A block is 32 gate rows and the 32 up rows of the same outputs × 128 along K, rows as in exact_layout.hpp. K is
/// permuted inside 64 so that one thread owns whole groups of 16. For lane%4 = c of half q (64 columns each), k-step 2q
/// + s and operand half h, byte j is column 64q + 16c + 8s + 4h + j. Tokens are permuted alike. A block is 4608
/// contiguous bytes:
///
///   `values`  2 halves × 128 threads × 4 words: gate and up of k-step 2q, gate and up of k-step 2q + 1. Value (h, j)
///             has its magnitude at bits 16h + 4j + 2…0. Its sign is at bit 8j + 7 for h = 0 and 8j + 3 for h = 1.
///   `scales`  128 threads × 4 bytes. They are gate and up of half 0, gate and up of half 1.
///
/// Blocks lie K first, all of them before the rows' factors: for each output group 32 gate rows, 32 up rows.
#include "machine/numbers.hpp"
#include "strategies/gemm/wgmma_dequant/device/exact_layout.hpp"

namespace thresher::strategies::gemm::wgmma_dequant::fast {

inline constexpr u32 block_k = 128;
inline constexpr u32 steps = 4;   ///< k-steps of 32 in a block
inline constexpr u32 halves = 2;  ///< of 64 along K, the range of the permutation
inline constexpr u32 half_k = block_k / halves;
inline constexpr u32 half_value_bytes = threads * 16;
inline constexpr u32 block_value_bytes = halves * half_value_bytes;
inline constexpr u32 block_scale_bytes = threads * 4;
inline constexpr u32 block_bytes = block_value_bytes + block_scale_bytes;

/// Padded as the exact layout pads, so that slots of either have whole blocks.
TH_DEVICE constexpr u32 k_blocks(u32 k) { return wgmma_dequant::k_blocks(k) / 2; }

/// Where the rows' factors begin.
TH_DEVICE constexpr unsigned long long factors_offset(u32 n, u32 k) {
  return static_cast<unsigned long long>(output_groups(n)) * k_blocks(k) * block_bytes;
}
inline constexpr u32 group_factors = 2 * block_outputs;
TH_DEVICE constexpr u32 factor_index(u32 group, bool up, u32 output) {
  return group * group_factors + (up ? block_outputs : 0) + output;
}

/// The e2m1 code of element i (0…7: operand half i/4, byte i%4) placed in its word.
TH_DEVICE constexpr u32 place(u32 code, u32 i) {
  const u32 sign_at = i % 4 * 8 + (i < 4 ? 7 : 3);
  return (code & 7U) << (i * 4) | (code >> 3 & 1U) << sign_at;
}

/// Which weights a word holds, within the block: 8 columns from `column` on.
struct Source {
  bool up;
  u32 output;  ///< 0…31
  u32 column;  ///< 0…120, a multiple of 8
};
TH_DEVICE constexpr Source source(u32 thread, u32 half, u32 word) {
  const u32 lane = thread % 32;
  return {word % 2 == 1, thread / 32 * 8 + lane / 4, half * half_k + lane % 4 * 16 + word / 2 * 8};
}

/// Byte of a row of tokens, of 8 bits each, where the four elements from column 16·group + 4·quarter on lie.
TH_DEVICE constexpr u32 token_byte(u32 group, u32 quarter) { return group / 4 * 64 + quarter * 16 + group % 4 * 4; }

/// Codes of scales that the table of products takes.
inline constexpr u32 smallest_scale_code = 16;
inline constexpr u32 largest_scale_code = 105;

/// An e4m3 magnitude's code, with subnormal values continued below 8 as if exponents went on. The code of a value times
/// 2^e is this plus 8e. Not for zero.
TH_DEVICE constexpr int extended_code(u32 code) {
  int shift = 0;
  while ((code << shift) < 8U) {
    ++shift;
  }
  return static_cast<int>(code << shift) - 8 * shift;
}

/// e of a row whose largest scale (not NaN) has this code; 0 for a row of zeros.
TH_DEVICE constexpr int row_exponent(u32 largest_code) {
  if (largest_code == 0) {
    return 0;
  }
  return (static_cast<int>(largest_scale_code) + 16 * 8 - extended_code(largest_code)) / 8 - 16;
}

/// 2^e, −126 ≤ e ≤ 127.
TH_DEVICE float power_of_two(int e) { return machine::convert::bits_float(static_cast<u32>(127 + e) << 23); }

}  // namespace thresher::strategies::gemm::wgmma_dequant::fast
