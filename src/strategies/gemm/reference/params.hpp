#pragma once
/// The parameters of the definition on the GPU. The same layout on the host and on the GPU; addresses are the GPU's.
#include "strategies/gemm/device/words.hpp"

namespace thresher::strategies::gemm::reference {

/// A block computes `tile`×`tile` outputs, one a thread, over K in steps of `tile`.
inline constexpr u32 tile = 16;
inline constexpr u32 threads = tile * tile;
inline constexpr u32 shared_bytes = 3 * tile * (tile + 1) * 8;

enum class OperandFormat : u32 { fp16, bf16, nvfp4 };

struct Operand {
  u64 values;
  i64 row_stride;    ///< elements
  u64 scales;        ///< NVFP4 only
  u64 global_scale;  ///< NVFP4 only; null for 1
  OperandFormat format;
  u32 scales_blocked;  ///< NVFP4 only: 1 for ScaleLayout::blocked
};

struct Parameters {
  Operand a;
  Operand b1_gate;
  Operand b2_up;
  u64 out;  ///< float64 [m, n]
  u32 m;
  u32 n;
  u32 k;
  u32 activation;  ///< an ActivationCode
  float alpha;     ///< swiglu_clamped
  float limit;
  float up_offset;
};

}  // namespace thresher::strategies::gemm::reference
