#pragma once
/// What a launch of a grouped GEMM with packed NVFP4 weights is given: one grid-constant parameter.
#include "machine/tensor_map.hpp"
#include "strategies/gemm/device/finish_params.hpp"
#include "strategies/gemm/device/groups.hpp"

namespace thresher::strategies::grouped_gemm::packed {

struct Params {
  machine::TensorMap few_tokens;   ///< [slot, row, k] in rows of 128 bytes, boxes of few_token_rows
  machine::TensorMap many_tokens;  ///< likewise, of many_token_rows
  GroupParams groups;
  FinishParams finish;
  machine::Global<machine::u8> weights;   ///< expert behind expert, in the dual GEMM's exact or fast layout
  machine::Global<machine::u64> profile;  ///< pipeline/timeline.hpp
  /// Each multiplies its product: one for each expert; of the tokens one for each slot, or one. Null means 1.
  machine::Global<float> token_scales;
  machine::Global<float> gate_scales;
  machine::Global<float> up_scales;
  /// fast only: multiply the sums of an output's rows, expert behind expert, and of a token.
  machine::Global<float> row_factors;
  machine::Global<float> token_factors;
  machine::u64 expert_bytes = 0;  ///< of weights
  machine::u32 k_blocks = 0;      ///< blocks of weights along K
  machine::u32 output_groups = 0;
  machine::u32 ids_divisor = 1;  ///< gathered: a row's token is its id over that
  float result_scale = 0;        ///< undoes the powers of two of the operands
};

}  // namespace thresher::strategies::grouped_gemm::packed
