#pragma once
/// What the end of every grouped product is given, and what it is compiled for (device/finish.hpp).
#include "machine/global.hpp"
#include "pipeline/transposed_layout.hpp"
#include "strategies/dual_gemm/device/words.hpp"

namespace thresher::strategies::grouped_gemm {

using namespace machine;
using dual_gemm::ActivationCode;
using dual_gemm::Number;

/// A number for each output of each group; null data: none.
struct Biases {
  Global<u8> data;
  i64 group_stride = 0;  ///< elements
  i64 stride = 0;
  Number format = Number::fp32;
};

/// Part of the kernel's parameter.
struct FinishParams {
  Global<u8> c;
  u64 row_stride = 0;   ///< elements
  u64 slot_stride = 0;  ///< from one slot's first row to the next one's; 0 of packed rows
  u32 n = 0;
  u32 wide = 0;  ///< 1 when C allows 16-byte stores of whole groups of 8 outputs
  Biases gate_bias;
  Biases up_bias;
  Global<float> row_weights;
  u64 row_weights_slot_stride = 0;
  Global<i32> row_ids;  ///< gathered: rows whose id is not below ids_end, as an unsigned number, are not stored
  u32 ids_end = 0;
  float alpha = 0;  ///< swiglu_clamped
  float limit = 0;
  float up_offset = 0;
};

/// What the kernel is compiled for.
struct FinishKnobs {
  Number output = Number::bf16;
  int matrices = 2;  ///< gate and up, with an activation; or one, without
  ActivationCode activation = ActivationCode::silu;
  bool bias = false;
  bool row_weights = false;
  bool gathered = false;
  bool operator==(const FinishKnobs&) const = default;
};

/// Tokens that are staged at once.
inline constexpr u32 staged_tokens = 32;
TH_DEVICE constexpr u32 staged_at_once(u32 columns) { return columns < staged_tokens ? columns : staged_tokens; }
/// Of a warpgroup whose warps have `eights` times 8 outputs, in whole kibibytes.
TH_DEVICE constexpr int finish_staging_bytes(Number output, u32 eights) {
  const u32 bytes = staged_tokens * pipeline::transposed_pitch(eights * pipeline::warpgroup_outputs);
  return output == Number::fp32 ? 0 : static_cast<int>((bytes + 1023) / 1024 * 1024);
}

}  // namespace thresher::strategies::grouped_gemm
