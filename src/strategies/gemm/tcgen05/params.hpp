#pragma once
/// The one grid-constant parameter of a dense dual GEMM of plain operands on tcgen05. Kernels of groups are given
/// PlainParams (strategies/gemm/device/plain_params.hpp).
#include "machine/global.hpp"
#include "machine/tensor_map.hpp"

namespace thresher::strategies::gemm::tcgen05 {

/// All tensor maps have boxes of slot_k(config) elements along K, swizzled by 128 bytes.
struct DenseParams {
  machine::TensorMap gate;    ///< B1[n, k], boxes of block_outputs rows
  machine::TensorMap up;      ///< B2[n, k], likewise
  machine::TensorMap tokens;  ///< A[m, k], boxes of loaded_tokens(config) rows
  machine::Global<machine::u8> c;
  /// float32: one (null means 1), or one a row
  machine::Global<float> token_scales;
  machine::Global<float> gate_scales;
  machine::Global<float> up_scales;
  machine::Global<machine::u64> profile;  ///< pipeline/timeline.hpp
  machine::u64 c_row_stride = 0;          ///< elements
  machine::u32 m = 0;
  machine::u32 n = 0;
  machine::u32 k_steps = 0;       ///< ⌈k/slot_k(config)⌉
  machine::u32 c_wide = 0;        ///< 1 when C allows 16-byte stores of whole groups of 8 outputs
  machine::u32 token_tiles = 0;   ///< ⌈m/block_tokens⌉
  machine::u32 output_tiles = 0;  ///< ⌈n/tile_outputs(config)⌉
  float alpha = 0;                ///< swiglu_clamped
  float limit = 0;
  float up_offset = 0;
};

}  // namespace thresher::strategies::gemm::tcgen05
