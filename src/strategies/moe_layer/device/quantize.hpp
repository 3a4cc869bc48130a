#pragma once
/// Permutes top-k assignments by expert, and quantizes the rows that it copies to their places: tokens of 16 bits to
/// FP8, with a scale for each 128 values.
#include "strategies/gemm/device/fp8_rounding.hpp"
#include "strategies/moe_layer/device/route.hpp"

namespace thresher::strategies::moe_layer {

/// The pieces of the block's own tokens. Rows have a multiple of 128 values, so that 16 neighbouring threads have what
/// shares a scale. Threads of a warp go on together: a piece behind the last token is any.
template <gemm::Number number>
class QuantizedPieces : public TokenPieces<Vector<u32, 4>, 8> {
  using Pieces = TokenPieces<Vector<u32, 4>, 8>;
  using Values = gemm::LaneValues<number>;
  static constexpr u32 block_lanes = gemm::scale_block / Values::width;

 public:
  TH_DEVICE QuantizedPieces(const RouteParams& params, OwnChoices own)
      : Pieces(params.gather, own, 0, params.gather.row_bytes / 16), all_(params) {
    TH_UNROLL
    for (Vector<u32, 4>& piece : pieces_) {
      piece = {};
    }
  }

  TH_DEVICE void store(Shared<u32> rows) {
    TH_UNROLL
    for (const Vector<u32, 4>& piece : pieces_) {
      const Values values(piece);
      const float scale = gemm::fp8_scale(gemm::largest_of_lanes<block_lanes>(values.largest()), 0);
      if (Pieces::has_next()) {
        store_for_token(next_, values.e4m3(gemm::FastDivision(scale)), rows);
        store_scale(scale);
      }
      advance(next_);
    }
  }

  TH_DEVICE bool has_next() const { return warp::any(Pieces::has_next()); }

 private:
  /// The block that places a token's first assignment writes the token's scales.
  TH_DEVICE void store_scale(float scale) const {
    const u32 choice = next_.token * params_.divisor;
    if (next_.piece % block_lanes == 0 && choice >= own_.first && choice < own_.end) {
      all_.scales.store(
          static_cast<i64>(next_.token * all_.scales_row_stride + next_.piece / block_lanes * all_.scales_block_stride),
          scale);
    }
  }

  const RouteParams& all_;
};

/// The grid is [blocks of different assignments, parts].
template <gemm::Number number>
TH_KERNEL(route_threads, 1)
quantize_choices_kernel(TH_GRID_CONSTANT const RouteParams params) {
  launch::release_dependents();
  const RouteBlock choices(params);
  if (!choices.has_part()) {
    return;
  }
  QuantizedPieces<number> rows(params, choices.own());
  permute(choices, rows);
  block::sync();
  store_all(rows, choices.rows());
}

}  // namespace thresher::strategies::moe_layer
