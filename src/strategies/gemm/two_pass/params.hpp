#pragma once
/// The parameters of the two-pass kernels. The same layout on the host and on the GPU; addresses are the GPU's.
#include "strategies/gemm/device/words.hpp"

namespace thresher::strategies::gemm::two_pass {

inline constexpr u32 threads = 256;
/// Elements of a row that one thread of the converting kernels takes: one scale group of NVFP4, or half of one.
inline constexpr u32 nvfp4_elements_per_thread = 16;
inline constexpr u32 plain_elements_per_thread = 8;
/// Outputs of a row that one thread of `activate` writes.
inline constexpr u32 outputs_per_thread = 4;

/// A matrix [rows, columns] to be written contiguously in another format.
struct WidenParameters {
  u64 values;
  i64 row_bytes;       ///< from one row to the next
  u64 scales;          ///< NVFP4 only
  u32 scales_per_row;  ///< NVFP4 only: columns / 16
  u32 scales_blocked;  ///< NVFP4 only: 1 for ScaleLayout::blocked
  u64 out;             ///< 16-byte aligned
  u32 rows;
  u32 threads_per_row;  ///< columns / elements a thread
};

/// C = activation(gate·a_scale·gate_scale, up·a_scale·up_scale).
struct ActivateParameters {
  u64 gate;  ///< float32 [rows, intermediate_stride], 16-byte aligned
  u64 up;
  i64 intermediate_stride;  ///< elements, a multiple of 4
  u64 out;
  i64 out_stride;  ///< elements
  u32 rows;
  u32 columns;
  u32 vector_stores;  ///< 1 when every row of `out` starts at a multiple of 4 elements' bytes
  float alpha;        ///< swiglu_clamped
  float limit;
  float up_offset;
  u64 a_scale;  ///< global scales, null for 1
  u64 gate_scale;
  u64 up_scale;
};

}  // namespace thresher::strategies::gemm::two_pass
