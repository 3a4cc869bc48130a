#pragma once
/// Copies rows of A to where TMA can load them. The rows of one expert become contiguous.
#include "machine/launch.hpp"
#include "strategies/gemm/device/gather_row.hpp"

namespace thresher::strategies::gemm {

using namespace machine;

inline constexpr u32 gather_threads = 128;

/// A block copies one row.
TH_KERNEL(gather_threads, 1) gather_rows_kernel(TH_GRID_CONSTANT const GatherParams params) {
  launch::release_dependents();
  launch::wait_for_earlier_grids();
  const u32 row = launch::block_index().x;
  const u32 id = static_cast<u32>(params.row_ids.load(row));
  if (id < params.ids_end) {
    gather_row(params, row, id, {launch::thread_index(), gather_threads});
  }
}

}  // namespace thresher::strategies::gemm
