#pragma once
/// The inputs that the end of a grouped product reads beside its accumulators.
#include "machine/numbers.hpp"
#include "machine/warp.hpp"
#include "pipeline/grouped/directory.hpp"
#include "pipeline/output.hpp"
#include "strategies/gemm/device/finish_params.hpp"
#include "strategies/gemm/device/groups.hpp"

namespace thresher::strategies::gemm {

/// Whether a row of C is computed: the id that it was gathered by is of a token.
TH_DEVICE bool is_gathered(const FinishParams& params, u32 row) {
  return static_cast<u32>(params.row_ids.load(row)) < params.ids_end;
}

/// Whether a row of C that a tile has is stored.
template <bool gathered>
TH_DEVICE bool is_stored_row(const FinishParams& params, u32 row) {
  if constexpr (gathered) {
    return is_gathered(params, row);
  } else {
    return true;
  }
}

/// The rows of C up to the tile's last, of its slot where there are slots.
template <class Result>
TH_DEVICE pipeline::OutputMatrix<Result> output_matrix(const FinishParams& params, const pipeline::GroupTile& tile) {
  return {params.c.template as<Result>().offset(static_cast<i64>(tile.group * params.slot_stride)), params.row_stride,
          tile.row + tile.rows, params.n, params.wide};
}

/// By all lanes of a warp: rows_skipped where a row of the tile has no token.
TH_DEVICE u32 skipped_rows(const FinishParams& params, const pipeline::GroupTile& tile) {
  bool skips = false;
  for (u32 row = warp::lane(); row < tile.rows; row += 32) {
    skips |= !is_gathered(params, tile.row + row);
  }
  return warp::any(skips) ? rows_skipped : 0;
}

TH_DEVICE float bias_at(const Biases& biases, u32 group, u32 output) {
  const i64 at = static_cast<i64>(group) * biases.group_stride + static_cast<i64>(output) * biases.stride;
  if (biases.format == Number::fp32) {
    return biases.data.as<float>().load(at);
  }
  const u16 word = biases.data.as<u16>().load(at);
  return biases.format == Number::fp16 ? convert::to_float(Half{word}) : convert::to_float(BFloat16{word});
}

}  // namespace thresher::strategies::gemm
