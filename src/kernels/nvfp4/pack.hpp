#pragma once
/// NVFP4 weights into the packed layout, once, when a model is loaded; and NVFP4 tokens to 16 bits, in every call.
#include "kernels/nvfp4/exact_layout.hpp"
#include "machine/global.hpp"
#include "machine/launch.hpp"
#include "machine/numbers.hpp"

namespace thresher::kernels::nvfp4 {

using machine::Global;
using machine::i64;
using machine::u64;

/// A row-major NVFP4 matrix.
struct Matrix {
  Global<u8> values;  ///< two codes a byte, low nibble first
  Global<u8> scales;
  u64 row_bytes = 0;  ///< of values
  u32 rows = 0;
  u32 scale_columns = 0;   ///< k/16
  u32 scales_blocked = 0;  ///< 1 for the blocked layout
  u32 unused = 0;
};

TH_DEVICE u32 scale_code(const Matrix& matrix, u32 row, u32 column) {
  if (matrix.scales_blocked == 0) {
    return matrix.scales.load(static_cast<i64>(row) * matrix.scale_columns + column);
  }
  const i64 tile = static_cast<i64>(row / 128) * ((matrix.scale_columns + 3) / 4) + column / 4;
  return matrix.scales.load(tile * 512 + row % 32 * 16 + row % 128 / 32 * 4 + column % 4);
}

struct PackParams {
  Matrix gate;
  Matrix up;
  Global<u8> packed;
  u32 k_blocks = 0;  ///< nvfp4::k_blocks(k)
};

/// The two codes from `column` (even) of a row, beyond the matrix zero, with the sign of their scale moved into them.
TH_DEVICE u32 signed_codes(const Matrix& matrix, u32 row, u32 column) {
  if (row >= matrix.rows || column / 16 >= matrix.scale_columns) {
    return 0;
  }
  const u32 codes = matrix.values.load(static_cast<i64>(row) * matrix.row_bytes + column / 2);
  return (scale_code(matrix, row, column / 16) & 0x80U) != 0 ? codes ^ 0x88U : codes;
}

TH_DEVICE u32 magnitude_of_scale(const Matrix& matrix, u32 row, u32 column) {
  return row >= matrix.rows || column >= matrix.scale_columns ? 0 : scale_code(matrix, row, column) & 0x7FU;
}

/// One thread makes one thread's 16 bytes of a block; the first 32 of a block also make its scales.
TH_KERNEL(128, 1) pack_kernel(TH_GRID_CONSTANT const PackParams params) {
  const u32 thread = machine::launch::thread_index();
  const u32 block = machine::launch::block_index().x;
  const u32 group = block / params.k_blocks;
  const u32 first_column = block % params.k_blocks * block_k;
  const Global<u8> out = params.packed.offset(static_cast<i64>(block) * block_bytes);
  machine::Vector<u32, 4> words;
  TH_UNROLL
  for (u32 step = 0; step < steps; ++step) {
    words.at[step] = 0;
    TH_UNROLL
    for (u32 pair = 0; pair < 4; ++pair) {
      const Source from = source(thread, step, pair);
      const u32 codes = signed_codes(from.up ? params.up : params.gate, group * block_outputs + from.output,
                                     first_column + from.column);
      words.at[step] |= place(codes, pair) | static_cast<u32>(place(codes >> 4, pair)) << 16;
    }
  }
  out.as<machine::Vector<u32, 4>>().store(thread, words);
  if (thread < block_outputs) {
    TH_UNROLL
    for (u32 step = 0; step < steps; ++step) {
      const u32 row = group * block_outputs + thread;
      const u32 column = first_column / 16 + step;
      out.store(block_value_bytes + scale_byte(false, thread, step),
                static_cast<u8>(magnitude_of_scale(params.gate, row, column)));
      out.store(block_value_bytes + scale_byte(true, thread, step),
                static_cast<u8>(magnitude_of_scale(params.up, row, column)));
    }
  }
}

struct WidenTokensParams {
  Matrix tokens;       ///< NVFP4; or 16-bit rows in `values`, copied
  Global<u8> out;      ///< [rows][64·⌈k/64⌉] of 16 bits, zeros beyond k
  u32 row_blocks = 0;  ///< ⌈k/64⌉
  u32 k = 0;
};

/// Four codes of `codes` (from bit 0) times their scale in fp16: exact.
TH_DEVICE machine::Vector<u32, 2> widen_four(u32 codes, u32 scale) {
  constexpr u32 two_to_14 = 0x74007400U;
  machine::Vector<u32, 2> result;
  TH_UNROLL
  for (u32 i = 0; i < 2; ++i) {
    const u32 pair = codes >> (8 * i);
    const u32 spread = (pair & 0xFU) | (pair & 0xF0U) << 12;
    const u32 value = (spread & 0x00070007U) << 9 | (spread & 0x00080008U) << 12;
    result.at[i] =
        machine::packed::multiply<machine::Half>(machine::packed::multiply<machine::Half>(value, two_to_14), scale);
  }
  return result;
}

/// One thread makes 16 elements of a row.
TH_KERNEL(128, 1) widen_tokens_kernel(TH_GRID_CONSTANT const WidenTokensParams params) {
  machine::launch::release_dependents();
  const u32 groups = params.row_blocks * (block_k / 16);
  const u64 index = static_cast<u64>(machine::launch::block_index().x) * 128 + machine::launch::thread_index();
  const u32 row = static_cast<u32>(index / groups);
  const u32 column = static_cast<u32>(index % groups);
  machine::launch::wait_for_earlier_grids();
  if (row >= params.tokens.rows) {
    return;
  }
  using Words = machine::Vector<u32, 4>;
  Words halves[2] = {};
  if (column < params.tokens.scale_columns) {
    const u32 code = scale_code(params.tokens, row, column);
    const u32 scale = machine::packed::broadcast<0>(machine::convert::e4m3x2_to_half2(static_cast<machine::u16>(code)));
    const Global<u8> from = params.tokens.values.offset(static_cast<i64>(row) * params.tokens.row_bytes + column * 8);
    TH_UNROLL
    for (u32 quarter = 0; quarter < 4; ++quarter) {
      const u32 codes = from.load(quarter * 2) | static_cast<u32>(from.load(quarter * 2 + 1)) << 8;
      const machine::Vector<u32, 2> four = widen_four(codes, scale);
      halves[quarter / 2].at[quarter % 2 * 2] = four.at[0];
      halves[quarter / 2].at[quarter % 2 * 2 + 1] = four.at[1];
    }
  }
  const Global<Words> out = params.out.as<Words>().offset(static_cast<i64>(row) * groups * 2 + column * 2);
  out.store(0, halves[0]);
  out.store(1, halves[1]);
}

/// One thread copies 8 elements of a row of 16-bit tokens.
TH_KERNEL(128, 1) pad_tokens_kernel(TH_GRID_CONSTANT const WidenTokensParams params) {
  machine::launch::release_dependents();
  const u32 groups = params.row_blocks * (block_k / 8);
  const u64 index = static_cast<u64>(machine::launch::block_index().x) * 128 + machine::launch::thread_index();
  const u32 row = static_cast<u32>(index / groups);
  const u32 column = static_cast<u32>(index % groups) * 8;
  machine::launch::wait_for_earlier_grids();
  if (row >= params.tokens.rows) {
    return;
  }
  using machine::u16;
  const Global<u16> from = params.tokens.values.offset(static_cast<i64>(row) * params.tokens.row_bytes).as<u16>();
  const Global<u16> to = params.out.as<u16>().offset(static_cast<i64>(row) * groups * 8);
  TH_UNROLL
  for (u32 i = 0; i < 8; ++i) {
    to.store(column + i, column + i < params.k ? from.load(column + i) : u16{0});
  }
}

}  // namespace thresher::kernels::nvfp4
