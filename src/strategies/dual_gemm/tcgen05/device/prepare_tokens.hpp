#pragma once
/// NVFP4 tokens to rows without gaps and scales in blocks for each tile, in every call that needs it.
#include "machine/launch.hpp"
#include "strategies/dual_gemm/tcgen05/device/pack.hpp"

namespace thresher::strategies::dual_gemm::tcgen05 {

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

/// A thread's four groups of a token, which is beyond the last where the tile or the tokens end.
class PreparedPart {
 public:
  TH_DEVICE PreparedPart(const PrepareTokensParams& params, u64 item) : params_(params) {
    scale_row_ = static_cast<u32>(item / params.k_blocks);
    block_ = static_cast<u32>(item - u64{scale_row_} * params.k_blocks);
    const u32 tile_rows_of_scales = scale_groups(params.block_tokens) * 128;
    const u32 tile = scale_row_ / tile_rows_of_scales;
    const u32 row = scale_row_ - tile * tile_rows_of_scales;
    token_ = row < params.block_tokens ? tile * params.block_tokens + row : params.tokens.rows;
  }

  TH_DEVICE void make() const {
    u32 scales = 0;
    TH_UNROLL
    for (u32 i = 0; i < 4; ++i) {
      const u32 column = block_ * 4 + i;
      const ScaledGroup group = scaled_group(params_.tokens, token_, column);
      scales |= group.scale << (i * 8);
      store(column, group.codes);
    }
    const u64 block = u64{scale_row_ / 128} * params_.k_blocks + block_;
    params_.scales.offset(static_cast<i64>(block * scale_block_bytes + scale_byte(scale_row_, 0)))
        .as<u32>()
        .store(0, scales);
  }

 private:
  TH_DEVICE void store(u32 column, const machine::Vector<u32, 2>& codes) const {
    if (token_ < params_.tokens.rows && u64{column} * 8 < params_.row_bytes) {
      params_.codes.offset(static_cast<i64>(token_ * params_.row_bytes))
          .as<machine::Vector<u32, 2>>()
          .store(column, codes);
    }
  }

  const PrepareTokensParams& params_;
  u32 scale_row_;
  u32 block_;  ///< of 64 along K
  u32 token_;
};

TH_KERNEL(prepare_threads, 1) prepare_tokens_kernel(TH_GRID_CONSTANT const PrepareTokensParams params) {
  machine::launch::release_dependents();
  const u64 item = u64{machine::launch::block_index().x} * prepare_threads + machine::launch::thread_index();
  machine::launch::wait_for_earlier_grids();
  if (item < prepare_items(params)) {
    PreparedPart(params, item).make();
  }
}

}  // namespace thresher::strategies::dual_gemm::tcgen05
