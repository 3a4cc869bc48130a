#pragma once
/// What a launch of a grouped GEMM of plain operands is given, in 16 bits or in FP8 whose scales are of rows or of
/// whole matrices: one grid-constant parameter.
#include "machine/tensor_map.hpp"
#include "strategies/grouped_gemm/device/finish_params.hpp"
#include "strategies/grouped_gemm/device/groups.hpp"

namespace thresher::strategies::grouped_gemm {

/// The float32 scales of one matrix of each expert: one (null means 1), or one for each of its rows.
struct WeightScaleParams {
  machine::Global<float> scales;
  machine::u32 expert_stride = 0;
  machine::u32 row_stride = 0;
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
  machine::Global<float> token_scales;  ///< one, of slots one for each (null means 1); or one for each token
  machine::u32 token_scales_slot_stride = 0;
  machine::u32 ids_divisor = 1;  ///< gathered: row r is of the token row_ids[r] / ids_divisor
};

}  // namespace thresher::strategies::grouped_gemm
