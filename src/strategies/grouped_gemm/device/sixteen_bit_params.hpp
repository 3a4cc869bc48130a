#pragma once
/// What a launch of a grouped GEMM in 16 bits is given: one grid-constant parameter.
#include "machine/tensor_map.hpp"
#include "strategies/grouped_gemm/device/finish_params.hpp"
#include "strategies/grouped_gemm/device/groups.hpp"

namespace thresher::strategies::grouped_gemm {

struct SixteenBitParams {
  machine::TensorMap gate;         ///< weights [expert, n, k], boxes of panel_k × the rows of half a slot's weights
  machine::TensorMap up;           ///< likewise; of two matrices only
  machine::TensorMap few_tokens;   ///< A[slot, row, k], boxes of panel_k × few_token_rows
  machine::TensorMap many_tokens;  ///< likewise, of panel_k × many_token_rows
  GroupParams groups;
  FinishParams finish;
  machine::Global<machine::u64> profile;  ///< pipeline/timeline.hpp
  machine::u32 k = 0;
};

}  // namespace thresher::strategies::grouped_gemm
