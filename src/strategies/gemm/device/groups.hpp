#pragma once
/// The groups of a call as its kernels are given them, and where they say what was wrong with them.
#include "machine/launch.hpp"
#include "pipeline/grouped/groups.hpp"

namespace thresher::strategies::gemm {

inline constexpr machine::u32 rows_skipped = 8;  ///< a flag beside pipeline::GroupFlag

/// Part of the kernel's parameter.
struct GroupParams {
  pipeline::Groups groups;
  machine::Global<machine::u32> status;  ///< strategies/gemm/tensors.hpp; null where there are no bounds
};

/// By one thread of each block that has something to say: of every one, or of the first alone.
template <bool by_every_block>
TH_DEVICE void report_status(const GroupParams& params, machine::u32 flags) {
  if (params.status.is_null()) {
    return;
  }
  const machine::u32 block = machine::launch::block_index().x;
  if (block == 0) {
    params.status.store(0, by_every_block ? machine::launch::block_count().x : 1);
  }
  params.status.store(1 + block, flags);
}

}  // namespace thresher::strategies::gemm
