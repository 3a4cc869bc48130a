#pragma once
/// The parameters and the compile-time knobs of the end of every grouped product (device/finish.hpp).
#include "machine/global.hpp"
#include "pipeline/transposed_layout.hpp"
#include "strategies/gemm/device/words.hpp"

namespace thresher::strategies::gemm {

using namespace machine;

/// A number for each output of each group; null data: none.
struct Biases {
  Global<u8> data;
  i64 group_stride = 0;  ///< elements
  i64 stride = 0;
  Number format = Number::fp32;
};

/// The scales of C in FP8. Scales of blocks of 128 outputs are written. A static scale is read: one, or one for each
/// slot.
struct OutputScaleParams {
  Global<float> scales;  ///< null for a static scale of 1
  u64 slot_stride = 0;
  u64 row_stride = 0;
  u64 block_stride = 0;
  u32 powers_of_two = 0;
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
  float alpha = 0;  ///< of the activation, as the next two
  float limit = 0;
  float up_offset = 0;
  OutputScaleParams output_scales;
};

/// The kernel is compiled for these values.
struct FinishKnobs {
  Number output = Number::bf16;
  Scaling output_scaling = Scaling::none;  ///< of e4m3: of a tensor or of blocks
  int matrices = 2;                        ///< gate and up, or one
  ActivationCode activation = ActivationCode::silu;
  bool bias = false;
  bool row_weights = false;
  bool gathered = false;
  bool operator==(const FinishKnobs&) const = default;
};

/// Returns the knobs of a configuration with these members, whose outputs have no scales.
template <class Config>
TH_DEVICE constexpr FinishKnobs finish_knobs(const Config& c) {
  return {.output = c.output,
          .matrices = c.matrices,
          .activation = c.activation,
          .bias = c.bias,
          .row_weights = c.row_weights,
          .gathered = c.gathered};
}

/// Tokens that are staged at once.
inline constexpr u32 staged_tokens = 32;
TH_DEVICE constexpr u32 staged_at_once(u32 columns) { return columns < staged_tokens ? columns : staged_tokens; }
/// A token's 64 codes, and 16 bytes so that neighbours touch different banks; and those of all.
inline constexpr u32 staged_code_pitch = 64 + 16;
inline constexpr u32 staged_code_bytes = staged_tokens * staged_code_pitch;
/// Returns the staging of a warpgroup whose warps have `eights` times 8 outputs, in bytes, as whole kibibytes. FP8 has
/// 16 outputs a warp, and a float of each warp for each token beside them.
TH_DEVICE constexpr int finish_staging_bytes(Number output, u32 eights) {
  const u32 bytes = output == Number::e4m3
                        ? staged_code_bytes + 4 * staged_tokens * static_cast<u32>(sizeof(float))
                        : staged_tokens * pipeline::transposed_pitch(eights * pipeline::warpgroup_outputs);
  return output == Number::fp32 ? 0 : static_cast<int>((bytes + 1023) / 1024 * 1024);
}

}  // namespace thresher::strategies::gemm
