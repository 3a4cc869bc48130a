#pragma once
/// What a launch of a grouped GEMM on tcgen05 is given: one grid-constant parameter.
#include "machine/tensor_map.hpp"
#include "strategies/gemm/device/finish_params.hpp"
#include "strategies/gemm/device/groups.hpp"

namespace thresher::strategies::grouped_gemm::tcgen05 {

struct Params {
  /// Packed codes, uint8, as [expert][row tiles · k_steps][128][128]: boxes of 1 × 1 × 128 × 128, swizzled by 128
  /// bytes.
  machine::TensorMap weights;
  /// Packed scales, uint16, as [expert][row tiles · k_steps][slot_scale_blocks][256]: boxes of 1 × 1 × 4 × 256, not
  /// swizzled.
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

}  // namespace thresher::strategies::grouped_gemm::tcgen05
