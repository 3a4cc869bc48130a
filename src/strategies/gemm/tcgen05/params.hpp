#pragma once
/// The one grid-constant parameter of each kernel of a product on tcgen05. Those of groups of plain operands are given
/// PlainParams (strategies/gemm/device/plain_params.hpp).
#include "machine/tensor_map.hpp"
#include "strategies/gemm/device/finish_params.hpp"
#include "strategies/gemm/device/groups.hpp"

namespace thresher::strategies::gemm::tcgen05 {

/// For the dense dual GEMM of plain operands. All tensor maps have boxes of slot_k(config) elements along K, swizzled
/// by 128 bytes.
struct DenseParams {
  machine::TensorMap gate;    ///< B1[n, k], boxes of block_rows rows
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

namespace block_scaled {

/// For the dense dual GEMM of NVFP4.
struct DenseParams {
  /// Packed codes, uint8, as [row tiles · k_steps][128][128]: boxes of 1 × 128 × 128, swizzled by 128 bytes.
  machine::TensorMap weights;
  /// Packed scales, uint16, as [row tiles · k_steps][slot_scale_blocks][256]: boxes of 1 × 4 × 256, not swizzled.
  machine::TensorMap weight_scales;
  /// Codes, uint8, as [m][k/2]: boxes of loaded_tokens(config) × 128, swizzled by 128 bytes.
  machine::TensorMap tokens;
  /// Scales in blocks, uint16, as [scale groups][⌈k/64⌉][256]: boxes of token_scale_groups(config) ×
  /// loaded_scale_blocks(config) × 256, not swizzled. A tile's groups start at tile · token_scale_groups(config).
  machine::TensorMap token_scales;
  /// The same scales as bytes: Config::unsigned_scales alone reads them.
  machine::Global<machine::u8> scale_bytes;
  machine::Global<machine::u8> c;
  machine::Global<machine::u64> profile;  ///< pipeline/timeline.hpp
  machine::u64 c_row_stride = 0;          ///< elements
  /// Each multiplies its product; null means 1.
  machine::Global<float> token_factors;
  machine::Global<float> gate_factors;
  machine::Global<float> up_factors;
  machine::u32 m = 0;
  machine::u32 n = 0;
  machine::u32 k = 0;
  machine::u32 k_steps = 0;       ///< ⌈k/256⌉
  machine::u32 c_wide = 0;        ///< 1 when C allows 16-byte stores of whole groups of 8 outputs
  machine::u32 token_tiles = 0;   ///< ⌈m/block_tokens⌉
  machine::u32 output_tiles = 0;  ///< ⌈n/tile_outputs(config)⌉
  float alpha = 0;                ///< swiglu_clamped
  float limit = 0;
  float up_offset = 0;
};

/// For groups of NVFP4. Maps of weights are as above, behind [expert].
struct GroupedParams {
  machine::TensorMap weights;
  machine::TensorMap weight_scales;
  /// Prepared codes, uint8, as [row, with slots one behind the other][prepared_row_bytes]: boxes of
  /// pipeline::few_token_rows × 128 and of pipeline::many_tensor_rows × 128, swizzled by 128 bytes.
  machine::TensorMap few_tokens;
  machine::TensorMap many_tokens;
  /// Prepared scales, uint16, as [row tile · token_scale_groups(config)][⌈k/64⌉][256]: boxes of
  /// token_scale_groups(config) × loaded_scale_blocks(config) × 256, not swizzled.
  machine::TensorMap token_scales;
  GroupParams groups;
  FinishParams finish;
  machine::Global<machine::u64> profile;  ///< pipeline/timeline.hpp
  /// Each multiplies its product: one for each expert; of the tokens one for each slot, or one. Null means 1.
  machine::Global<float> token_factors;
  machine::Global<float> gate_factors;
  machine::Global<float> up_factors;
  machine::u32 k_steps = 0;    ///< ⌈k/256⌉
  machine::u32 row_tiles = 0;  ///< ⌈n/block_outputs(config)⌉ of each expert
};

}  // namespace block_scaled
}  // namespace thresher::strategies::gemm::tcgen05
