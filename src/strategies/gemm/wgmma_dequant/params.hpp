#pragma once
/// The parameters of launches with packed NVFP4 weights, one grid-constant value each.
#include "machine/global.hpp"
#include "machine/tensor_map.hpp"
#include "strategies/gemm/device/finish_params.hpp"
#include "strategies/gemm/device/groups.hpp"

namespace thresher::strategies::gemm::wgmma_dequant {

inline constexpr machine::u32 no_ragged_slot = 0xFFFFFFFFU;

/// The factors of finished sums.
struct OperandScales {
  /// Weights have one for each expert, tokens one for each slot, or one for all. Null means 1.
  machine::Global<float> tokens;
  machine::Global<float> gate;
  machine::Global<float> up;
  /// fast only: one for each row of weights (fast::factor_index), expert behind expert, and one for each token.
  machine::Global<float> row_factors;
  machine::Global<float> token_factors;
};

struct DenseParams {
  /// Tokens in rows of 128 bytes, 64 elements of 16 bits (exact) or 128 of 8 (fast), as [k][m][row]: boxes of a row ×
  /// block_tokens × blocks_per_slot. Stages from ragged_slot on are not read through it.
  machine::TensorMap tokens;
  machine::TensorMap ragged_tokens;  ///< exact: the same tokens as [m][k], zeros beyond k: boxes of 64 × block_tokens
  machine::Global<machine::u8> weights;  ///< device/exact_layout.hpp or fast_layout.hpp
  machine::Global<machine::u8> c;
  machine::Global<machine::u64> profile;  ///< pipeline/timeline.hpp
  machine::u64 c_row_stride = 0;          ///< elements
  OperandScales scales;
  machine::u32 m = 0;
  machine::u32 n = 0;
  machine::u32 k_blocks = 0;  ///< blocks of weights along K
  /// The first stage that ends beyond k, where tokens lie as the caller has them; no_ragged_slot where none does or
  /// zeros lie beyond k.
  machine::u32 ragged_slot = 0;
  machine::u32 output_groups = 0;  ///< ⌈n/32⌉
  machine::u32 c_wide = 0;         ///< 1 when C allows 16-byte stores of whole groups of 8 outputs
  machine::u32 token_tiles = 0;
  machine::u32 output_tiles = 0;
  float result_scale = 0;  ///< undoes the powers of two of the operands
  float alpha = 0;         ///< swiglu_clamped
  float limit = 0;
  float up_offset = 0;
};

struct GroupedParams {
  machine::TensorMap few_tokens;   ///< [slot, row, k] in rows of 128 bytes, boxes of few_token_rows
  machine::TensorMap many_tokens;  ///< likewise, of many_token_rows
  GroupParams groups;
  FinishParams finish;
  machine::Global<machine::u8> weights;   ///< expert behind expert
  machine::Global<machine::u64> profile;  ///< pipeline/timeline.hpp
  OperandScales scales;
  machine::u64 expert_bytes = 0;  ///< of weights
  machine::u32 k_blocks = 0;      ///< blocks of weights along K, those of padding included
  machine::u32 k_steps = 0;       ///< stages
  machine::u32 output_groups = 0;
  machine::u32 ids_divisor = 1;  ///< gathered: a row's token is its id over that
  float result_scale = 0;        ///< undoes the powers of two of the operands
};

}  // namespace thresher::strategies::gemm::wgmma_dequant
