#pragma once
/// NVFP4 weights of all experts into the packed layouts, one expert behind the other.
#include "strategies/dual_gemm/packed/device/pack.hpp"

namespace thresher::strategies::grouped_gemm::packed {

namespace weights = dual_gemm::packed;
using machine::u32;
using machine::u64;

struct PackExpertsParams {
  weights::PackParams first;  ///< of the first expert
  u64 gate_value_bytes = 0;   ///< from one expert to the next
  u64 gate_scale_bytes = 0;
  u64 up_value_bytes = 0;
  u64 up_scale_bytes = 0;
  u64 packed_bytes = 0;
  u32 expert_blocks = 0;   ///< thread blocks for an expert
  u32 expert_factors = 0;  ///< fast only
};

/// Those of one expert.
TH_DEVICE weights::PackParams of_expert(const PackExpertsParams& params, u32 expert) {
  const auto behind = [&](u64 bytes) { return static_cast<machine::i64>(expert * bytes); };
  weights::PackParams own = params.first;
  own.gate.values = own.gate.values.offset(behind(params.gate_value_bytes));
  own.gate.scales = own.gate.scales.offset(behind(params.gate_scale_bytes));
  own.up.values = own.up.values.offset(behind(params.up_value_bytes));
  own.up.scales = own.up.scales.offset(behind(params.up_scale_bytes));
  own.packed = own.packed.offset(behind(params.packed_bytes));
  own.row_factors = own.row_factors.offset(behind(params.expert_factors));
  return own;
}

enum class Packing : machine::u8 { exact, factors, fast };

template <Packing packing, int matrices>
TH_KERNEL(128, 1)
pack_experts_kernel(TH_GRID_CONSTANT const PackExpertsParams params) {
  using Rows = weights::GateAndUp;
  using Row = weights::OneMatrix;
  const u32 expert = machine::launch::block_index().x / params.expert_blocks;
  const u32 block = machine::launch::block_index().x % params.expert_blocks;
  const weights::PackParams own = of_expert(params, expert);
  const auto pack = [&]<class Order>(Order) {
    if constexpr (packing == Packing::exact) {
      weights::pack_block<Order>(own, block);
    } else if constexpr (packing == Packing::factors) {
      weights::find_row_factor<Order>(own, block * 4 + machine::warp::index());
    } else {
      weights::pack_fast_block<Order>(own, block);
    }
  };
  if constexpr (matrices == 2) {
    pack(Rows{});
  } else {
    pack(Row{});
  }
}

}  // namespace thresher::strategies::grouped_gemm::packed
