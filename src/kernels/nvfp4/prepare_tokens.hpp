#pragma once
/// Tokens of the exact path to 16 bits, in every call that needs it.
#include "kernels/nvfp4/widen.hpp"
#include "machine/launch.hpp"

namespace thresher::kernels::nvfp4 {

struct WidenTokensParams {
  Matrix tokens;       ///< NVFP4; or 16-bit rows in `values`, copied
  Global<u8> out;      ///< [rows][64·⌈k/64⌉] of 16 bits, zeros beyond k
  u32 row_blocks = 0;  ///< ⌈k/64⌉
  u32 k = 0;
};

/// One thread makes 16 elements of a row.
TH_KERNEL(128, 1) widen_tokens_kernel(TH_GRID_CONSTANT const WidenTokensParams params) {
  machine::launch::release_dependents();
  const u32 groups = params.row_blocks * (block_k / 16);
  const u64 index = static_cast<u64>(machine::launch::block_index().x) * 128 + machine::launch::thread_index();
  const u32 row = static_cast<u32>(index / groups);
  const u32 column = static_cast<u32>(index % groups);
  if (row < params.tokens.rows && column % 16 == 0 && column < params.tokens.scale_columns) {
    prefetch_group(params.tokens, row, column);
  }
  machine::launch::wait_for_earlier_grids();
  if (row >= params.tokens.rows) {
    return;
  }
  using Words = machine::Vector<u32, 4>;
  Words halves[2] = {};
  if (column < params.tokens.scale_columns) {
    const u32 code = scale_code(params.tokens, row, column);
    const u32 scale = machine::packed::broadcast<0>(machine::convert::e4m3x2_to_half2(static_cast<machine::u16>(code)));
    const machine::Vector<u32, 2> all = group_codes(params.tokens, row, column);
    TH_UNROLL
    for (u32 quarter = 0; quarter < 4; ++quarter) {
      const u32 codes = all.at[quarter / 2] >> (quarter % 2 * 16);
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
