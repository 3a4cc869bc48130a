#pragma once
/// Tokens of the exact path to 16 bits in rows of whole blocks, in every call that needs it.
#include "machine/launch.hpp"
#include "strategies/gemm/device/nvfp4.hpp"
#include "strategies/gemm/wgmma_dequant/device/exact_layout.hpp"

namespace thresher::strategies::gemm::wgmma_dequant {

struct DequantizeTokensParams {
  Nvfp4Matrix tokens;  ///< NVFP4; or 16-bit rows in `values` that begin on 16 bytes, copied
  Global<u8> out;      ///< [rows][64·⌈k/64⌉] of 16 bits, zeros beyond k
  u32 row_blocks = 0;  ///< ⌈k/64⌉
};

inline constexpr u32 dequantize_threads = 256;
/// Few blocks that do much each. All of them are resident beside the product of the call before, and have asked L2 for
/// their tokens when it ends. The product that waits for them can then start.
inline constexpr u32 dequantize_parts = 4;

/// Where a thread finds eight elements of a row, in bytes from the block's first row.
struct DequantizedPart {
  u32 codes;
  int scale;      ///< before the first row's too: the blocked layout turns round after 32 rows
  bool is_there;  ///< not beyond K; the offsets are 0 otherwise
  bool is_written;
};

/// The rows from the block's first on.
class DequantizedRows {
 public:
  TH_DEVICE explicit DequantizedRows(const DequantizeTokensParams& params)
      : params_(params),
        first_(static_cast<u64>(machine::launch::block_index().x) * (dequantize_threads * dequantize_parts)),
        of_row_(params.row_blocks * (block_k / 8)),
        row_(static_cast<u32>(first_ / of_row_)),
        begin_(static_cast<u32>(first_ - static_cast<u64>(row_) * of_row_)) {}

  /// The block's eight number `index`.
  TH_DEVICE DequantizedPart part(u32 index) const {
    const u32 eight = begin_ + index;
    const u32 rows = eight / of_row_;
    const u32 in_row = eight - rows * of_row_;
    const Nvfp4Matrix& tokens = params_.tokens;
    const bool is_written = row_ + rows < tokens.rows;
    const bool is_there = is_written && in_row / 2 < tokens.scale_columns;
    if (!is_there) {
      return {0, 0, false, is_written};
    }
    const i64 scale = scale_index(tokens, row_ + rows, in_row / 2) - scale_index(tokens, row_, 0);
    return {rows * static_cast<u32>(tokens.row_bytes) + in_row * 4, static_cast<int>(scale), true, true};
  }
  TH_DEVICE Global<u8> codes() const {
    return params_.tokens.values.offset(static_cast<i64>(row_ * params_.tokens.row_bytes));
  }
  TH_DEVICE Global<u8> scales() const { return params_.tokens.scales.offset(scale_index(params_.tokens, row_, 0)); }
  TH_DEVICE i64 first() const { return static_cast<i64>(first_); }

 private:
  const DequantizeTokensParams& params_;
  u64 first_;
  u32 of_row_;
  u32 row_;
  u32 begin_;
};

/// A thread makes dequantize_parts times eight elements; the threads' eights are neighbours. Addresses are made before
/// the earlier grids are waited for.
TH_KERNEL(dequantize_threads, 6) dequantize_tokens_kernel(TH_GRID_CONSTANT const DequantizeTokensParams params) {
  machine::launch::release_dependents();
  const u32 thread = machine::launch::thread_index();
  const DequantizedRows rows(params);
  const Global<u8> from_codes = rows.codes();
  const Global<u8> from_scales = rows.scales();
  DequantizedPart parts[dequantize_parts];
  TH_UNROLL
  for (u32 i = 0; i < dequantize_parts; ++i) {
    parts[i] = rows.part(i * dequantize_threads + thread);
    // One thread for each line of codes.
    if (thread % 32 == 0 && parts[i].is_there) {
      from_codes.prefetch(parts[i].codes);
      from_scales.prefetch(parts[i].scale);
    }
  }
  using Words = machine::Vector<u32, 4>;
  const Global<Words> out = params.out.as<Words>().offset(rows.first() + thread);
  machine::launch::wait_for_earlier_grids();
  u32 codes[dequantize_parts]{};
  u32 scales[dequantize_parts];
  if (params.tokens.row_bytes % 4 == 0) {
    TH_UNROLL
    for (u32 i = 0; i < dequantize_parts; ++i) {
      codes[i] = from_codes.offset(parts[i].codes).as<u32>().load();
    }
  } else {
    TH_UNROLL
    for (u32 i = 0; i < 4 * dequantize_parts; ++i) {
      codes[i / 4] |= static_cast<u32>(from_codes.load(parts[i / 4].codes + i % 4)) << (i % 4 * 8);
    }
  }
  TH_UNROLL
  for (u32 i = 0; i < dequantize_parts; ++i) {
    scales[i] = from_scales.load(parts[i].scale);
  }
  TH_UNROLL
  for (u32 i = 0; i < dequantize_parts; ++i) {
    if (parts[i].is_written) {
      const u32 scale =
          machine::packed::broadcast<0>(machine::convert::e4m3x2_to_half2(static_cast<machine::u16>(scales[i])));
      const machine::Vector<u32, 2> low = widen_four(codes[i], scale);
      const machine::Vector<u32, 2> high = widen_four(codes[i] >> 16, scale);
      out.store(i * dequantize_threads,
                parts[i].is_there ? Words{{low.at[0], low.at[1], high.at[0], high.at[1]}} : Words{});
    }
  }
}

/// A thread copies pad_parts times eight elements of a row of 16-bit tokens; k is a multiple of 16.
inline constexpr u32 pad_threads = 128;
inline constexpr u32 pad_parts = 4;
/// Blocks of a row.
TH_DEVICE constexpr u32 pad_blocks(u32 row_blocks) {
  constexpr u32 eights = pad_threads * pad_parts;
  return (row_blocks * (block_k / 8) + eights - 1) / eights;
}
TH_KERNEL(pad_threads, 8) pad_tokens_kernel(TH_GRID_CONSTANT const DequantizeTokensParams params) {
  machine::launch::release_dependents();
  using Words = machine::Vector<u32, 4>;
  const u32 eights = params.row_blocks * (block_k / 8);
  const u32 there = params.tokens.scale_columns * 2;
  const u32 block = machine::launch::block_index().x;
  const u32 row = block / pad_blocks(params.row_blocks);
  const u32 in_row = block - row * pad_blocks(params.row_blocks);
  const u32 first = in_row * (pad_threads * pad_parts) + machine::launch::thread_index();
  const Global<Words> from = params.tokens.values.offset(static_cast<i64>(row * params.tokens.row_bytes)).as<Words>();
  const Global<Words> to = params.out.as<Words>().offset(static_cast<i64>(row) * eights);
  Words words[pad_parts]{};
  machine::launch::wait_for_earlier_grids();
  TH_UNROLL
  for (u32 i = 0; i < pad_parts; ++i) {
    const u32 eight = first + i * pad_threads;
    if (eight < there) {
      words[i] = from.load(eight);
    }
  }
  TH_UNROLL
  for (u32 i = 0; i < pad_parts; ++i) {
    const u32 eight = first + i * pad_threads;
    if (eight < eights) {
      to.store(eight, words[i]);
    }
  }
}

}  // namespace thresher::strategies::gemm::wgmma_dequant
