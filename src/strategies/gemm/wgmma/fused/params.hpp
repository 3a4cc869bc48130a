#pragma once
/// The one grid-constant parameter of a dense product of 16-bit operands.
#include "machine/global.hpp"
#include "machine/tensor_map.hpp"
#include "strategies/gemm/device/finish_params.hpp"

namespace thresher::strategies::gemm::fused {

struct Params {
  machine::TensorMap tokens;  ///< A[m, k], boxes of panel_k × token_rows
  machine::TensorMap gate;    ///< B1[n, k], or the only matrix, boxes of panel_k × piece_rows
  machine::TensorMap up;      ///< B2[n, k], likewise
  machine::TensorMap output;  ///< C[m, n], boxes of one staging panel; epilogue `tma` only
  machine::Global<machine::u8> c;
  machine::Global<machine::u64> profile;  ///< pipeline/timeline.hpp
  machine::u64 c_row_stride = 0;          ///< elements
  /// Rows of A in a box: all of a tile's (at most 256), or as many as few tokens need, in whole groups of 8. Rows out
  /// of bounds are filled with zeros more slowly than others are copied.
  machine::u32 token_rows = 0;
  machine::u32 m = 0;
  machine::u32 n = 0;
  machine::u32 k = 0;
  machine::u32 c_wide = 0;       ///< 1 when C allows 16-byte stores
  machine::u32 token_tiles = 0;  ///< a multiple of the multicast group
  machine::u32 output_tiles = 0;
  float alpha = 0;  ///< swiglu_clamped
  float limit = 0;
  float up_offset = 0;
  Biases bias{};  ///< of one matrix
};

}  // namespace thresher::strategies::gemm::fused
