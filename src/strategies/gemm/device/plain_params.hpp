#pragma once
/// The one grid-constant parameter of a grouped GEMM of plain operands, in 16 bits or in FP8.
#include "machine/tensor_map.hpp"
#include "strategies/gemm/device/finish_params.hpp"
#include "strategies/gemm/device/groups.hpp"

namespace thresher::strategies::gemm {

/// The kernel is compiled for these values: they say what a scale of its operands covers.
struct ScalingKnobs {
  Scaling tokens = Scaling::none;
  Scaling weights = Scaling::none;
  bool gathered = false;
  bool operator==(const ScalingKnobs&) const = default;
};

/// Tells whether what a stage adds is accumulated in float32. Hopper's tensor cores keep sums of FP8 with few bits.
TH_DEVICE constexpr bool promotes(Number operand, Numerics numerics) {
  return operand == Number::e4m3 && numerics == Numerics::exact;
}

/// The float32 scales of one matrix of each expert. The matrix has one scale (null means 1), one for each row, or one
/// for each block. The scales of the blocks along K of each 128 rows are contiguous.
struct WeightScaleParams {
  machine::Global<float> scales;
  machine::u32 expert_stride = 0;
  machine::u32 row_stride = 0;  ///< from one row's, or 128 rows', to the next
};

struct PlainParams {
  machine::TensorMap gate;         ///< weights [expert, n, k], boxes of panel_k × the rows of half a slot's weights
  machine::TensorMap up;           ///< likewise; of two matrices only
  machine::TensorMap few_tokens;   ///< A[slot, row, k], boxes of panel_k × few_token_rows
  machine::TensorMap many_tokens;  ///< likewise, of panel_k × many_token_rows
  GroupParams groups;
  FinishParams finish;
  machine::Global<machine::u64> profile;  ///< pipeline/timeline.hpp
  machine::u32 k = 0;
  WeightScaleParams gate_scales;
  WeightScaleParams up_scales;
  machine::Global<float> token_scales;  ///< one, of slots one for each (null means 1); one for each token or its blocks
  machine::u32 token_scales_slot_stride = 0;
  machine::u32 token_scales_row_stride = 0;    ///< of blocks, from one token's to the next one's
  machine::u32 token_scales_block_stride = 0;  ///< and from one to the next along K
  machine::u32 ids_divisor = 1;                ///< gathered: row r is of the token row_ids[r] / ids_divisor
};

}  // namespace thresher::strategies::gemm
