#pragma once
/// NVFP4 weights of all experts into row tiles, one expert behind the other.
#include "strategies/dual_gemm/tcgen05/device/pack.hpp"

namespace thresher::strategies::grouped_gemm::tcgen05 {

using namespace gemm;

namespace weights = dual_gemm::tcgen05;
using machine::u32;
using machine::u64;

struct PackExpertsParams {
  weights::PackParams first;  ///< of the first expert
  u64 gate_value_bytes = 0;   ///< from one expert to the next
  u64 gate_scale_bytes = 0;
  u64 up_value_bytes = 0;
  u64 up_scale_bytes = 0;
  u32 expert_blocks = 0;  ///< of 128 rows by 256 along K, of an expert: row_tiles · k_steps
};

/// The grid has a block of threads for each block of each expert.
template <int matrices>
TH_KERNEL(weights::pack_threads, 1)
pack_experts_kernel(TH_GRID_CONSTANT const PackExpertsParams params) {
  const u32 expert = machine::launch::block_index().x / params.expert_blocks;
  const auto behind = [&](u64 bytes) { return static_cast<machine::i64>(expert * bytes); };
  weights::PackParams own = params.first;
  own.gate.values = own.gate.values.offset(behind(params.gate_value_bytes));
  own.gate.scales = own.gate.scales.offset(behind(params.gate_scale_bytes));
  own.up.values = own.up.values.offset(behind(params.up_value_bytes));
  own.up.scales = own.up.scales.offset(behind(params.up_scale_bytes));
  own.codes = own.codes.offset(behind(u64{params.expert_blocks} * weights::weight_block_bytes));
  own.scales = own.scales.offset(behind(u64{params.expert_blocks} * weights::weight_scale_bytes));
  const u32 block = machine::launch::block_index().x - expert * params.expert_blocks;
  if constexpr (matrices == 2) {
    weights::pack_block<weights::GateAndUp>(own, block);
  } else {
    weights::pack_block<weights::OneMatrix>(own, block);
  }
}

}  // namespace thresher::strategies::grouped_gemm::tcgen05
