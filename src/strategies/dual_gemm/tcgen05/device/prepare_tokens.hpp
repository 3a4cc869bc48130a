#pragma once
/// NVFP4 tokens to rows without gaps and scales in blocks for each tile, in every call that needs it.
#include "machine/launch.hpp"
#include "strategies/dual_gemm/tcgen05/device/pack.hpp"

namespace thresher::strategies::dual_gemm::tcgen05 {

/// Where prepared tokens go.
struct PreparedTokens {
  Global<u8> codes;   ///< rows of row_bytes
  Global<u8> scales;  ///< groups of 128 rows, blocks along K first
  u64 row_bytes = 0;  ///< prepared_row_bytes
  u32 k_blocks = 0;   ///< scale_k_blocks
};

/// Four groups of 16 of one token.
struct PreparedPart {
  u32 source;     ///< the token; beyond the last there are zeros
  u32 scale_row;  ///< of the prepared scales
  u32 block;      ///< of 64 along K
};

/// The part's scales, and its codes to row `row` of the prepared ones where `keeps_codes`.
TH_DEVICE void prepare_part(const PreparedTokens& to, const Matrix& tokens, const PreparedPart& part, u32 row,
                            bool keeps_codes) {
  u32 scales = 0;
  TH_UNROLL
  for (u32 i = 0; i < 4; ++i) {
    const u32 column = part.block * 4 + i;
    const ScaledGroup group = scaled_group(tokens, part.source, column);
    scales |= group.scale << (i * 8);
    if (keeps_codes && u64{column} * 8 < to.row_bytes) {
      to.codes.offset(static_cast<i64>(row * to.row_bytes)).as<machine::Vector<u32, 2>>().store(column, group.codes);
    }
  }
  const u64 block = u64{part.scale_row / 128} * to.k_blocks + part.block;
  to.scales.offset(static_cast<i64>(block * scale_block_bytes + scale_byte(part.scale_row, 0)))
      .as<u32>()
      .store(0, scales);
}

struct PrepareTokensParams {
  Matrix tokens;
  Global<u8> codes;      ///< rows of prepared_row_bytes
  Global<u8> scales;     ///< prepared_scale_bytes
  u64 row_bytes = 0;     ///< prepared_row_bytes
  u32 k_blocks = 0;      ///< scale_k_blocks
  u32 block_tokens = 0;  ///< of a tile
  u32 scale_rows = 0;    ///< 128 · prepared_scale_groups
};

inline constexpr u32 prepare_threads = 128;

/// Threads that it takes: one for each row of the scales and 64 along K.
TH_DEVICE constexpr u64 prepare_items(const PrepareTokensParams& params) {
  return u64{params.scale_rows} * params.k_blocks;
}

/// A thread's token is beyond the last where its tile or the tokens end.
TH_DEVICE void prepare_item(const PrepareTokensParams& params, u64 item) {
  const u32 scale_row = static_cast<u32>(item / params.k_blocks);
  const u32 block = static_cast<u32>(item - u64{scale_row} * params.k_blocks);
  const u32 tile_scale_rows = scale_groups(params.block_tokens) * 128;
  const u32 tile = scale_row / tile_scale_rows;
  const u32 row = scale_row - tile * tile_scale_rows;
  const u32 token = row < params.block_tokens ? tile * params.block_tokens + row : params.tokens.rows;
  prepare_part({params.codes, params.scales, params.row_bytes, params.k_blocks}, params.tokens,
               {token, scale_row, block}, token, token < params.tokens.rows);
}

TH_KERNEL(prepare_threads, 1) prepare_tokens_kernel(TH_GRID_CONSTANT const PrepareTokensParams params) {
  machine::launch::release_dependents();
  const u64 item = u64{machine::launch::block_index().x} * prepare_threads + machine::launch::thread_index();
  machine::launch::wait_for_earlier_grids();
  if (item < prepare_items(params)) {
    prepare_item(params, item);
  }
}

}  // namespace thresher::strategies::dual_gemm::tcgen05
