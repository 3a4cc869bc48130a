#pragma once
/// Where the float32 scales of plain FP8 operands lie: whose matrices and rows they are of.
#include "pipeline/grouped/directory.hpp"
#include "strategies/gemm/device/plain_params.hpp"
#include "strategies/gemm/device/row_scales.hpp"

namespace thresher::strategies::gemm {

/// Returns the scales of an expert's weights.
TH_DEVICE Global<float> scales_of(const WeightScaleParams& weights, u32 group) {
  return weights.scales.is_null() ? weights.scales : weights.scales.offset(group * weights.expert_stride);
}
/// Returns the scales of the tokens that a tile's rows belong to: of packed and gathered ones, or of a slot's.
TH_DEVICE Global<float> token_scales_of(const PlainParams& params, const pipeline::GroupTile& tile) {
  return params.token_scales.is_null() ? params.token_scales
                                       : params.token_scales.offset(tile.group * params.token_scales_slot_stride);
}

/// Returns the row of A that a row of C belongs to, or no_token where there is none.
template <bool gathered>
TH_DEVICE u32 token_of(const PlainParams& params, u32 row) {
  if constexpr (gathered) {
    const u32 id = static_cast<u32>(params.finish.row_ids.load(row));
    return id < params.finish.ids_end ? id / params.ids_divisor : no_token;
  } else {
    return row;
  }
}

/// The same of the row `at` of a tile, which may lie behind its last.
template <bool gathered>
TH_DEVICE u32 token_of(const PlainParams& params, const pipeline::GroupTile& tile, u32 at) {
  return at < tile.rows ? token_of<gathered>(params, tile.row + at) : no_token;
}

/// Returns a token's scale, where `scales` has that of the whole matrix or those of its rows. Other scalings give 1.
template <Scaling scaling>
TH_DEVICE float token_scale(Global<float> scales, u32 token) {
  if constexpr (scaling == Scaling::tensor) {
    return detail::one_scale(scales);
  } else if constexpr (scaling == Scaling::row) {
    return token != no_token ? scales.load(token) : 0.0F;
  } else {
    return 1.0F;
  }
}

/// Returns where the scales of one token's blocks along K begin. A scale covers at least 16 bytes: 32 bits count them.
TH_DEVICE u32 block_scales_at(const PlainParams& params, const pipeline::GroupTile& tile, u32 token) {
  return token != no_token ? tile.group * params.token_scales_slot_stride + token * params.token_scales_row_stride
                           : no_token;
}
TH_DEVICE float block_scale(const PlainParams& params, u32 at, u32 block) {
  return at != no_token ? params.token_scales.load(at + block * params.token_scales_block_stride) : 0.0F;
}
/// And those of the block that has an output, the last beyond it.
TH_DEVICE u32 block_scales_at(const PlainParams& params, const WeightScaleParams& weights, u32 group, u32 output) {
  const u32 row = output < params.finish.n ? output : params.finish.n - 1;
  return group * weights.expert_stride + row / scale_block * weights.row_stride;
}

}  // namespace thresher::strategies::gemm
