#pragma once
/// What a launch of the packed NVFP4 dual GEMM is given: one grid-constant parameter.
#include "machine/global.hpp"
#include "machine/tensor_map.hpp"

namespace thresher::strategies::dual_gemm::packed {

inline constexpr machine::u32 no_ragged_slot = 0xFFFFFFFFU;

struct Params {
  /// Tokens in rows of 128 bytes, 64 elements of 16 bits (exact) or 128 of 8 (fast), as [k][m][row]: boxes of a row ×
  /// block_tokens × blocks_per_slot. Slots from ragged_slot on are not read through it.
  machine::TensorMap tokens;
  machine::TensorMap ragged_tokens;  ///< exact: the same tokens as [m][k], zeros beyond k: boxes of 64 × block_tokens
  machine::Global<machine::u8> weights;  ///< strategies/dual_gemm/packed/device/exact_layout.hpp or fast_layout.hpp
  machine::Global<machine::u8> c;
  machine::Global<machine::u64> profile;  ///< pipeline/timeline.hpp
  machine::u64 c_row_stride = 0;          ///< elements
  /// Each multiplies its product; null means 1.
  machine::Global<float> token_scale;
  machine::Global<float> gate_scale;
  machine::Global<float> up_scale;
  /// fast only: multiply the sums of an output's rows (fast::factor_index) and of a token.
  machine::Global<float> row_factors;
  machine::Global<float> token_factors;
  machine::u32 m = 0;
  machine::u32 n = 0;
  machine::u32 k_blocks = 0;  ///< blocks of weights along K
  /// The first slot that ends beyond k, where tokens lie as the caller has them; no_ragged_slot where none does or
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

}  // namespace thresher::strategies::dual_gemm::packed
