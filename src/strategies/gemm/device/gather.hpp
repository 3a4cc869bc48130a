#pragma once
/// Copies rows of A to where TMA can load them. The rows of one expert become contiguous.
#include "machine/launch.hpp"
#include "strategies/gemm/device/gather_params.hpp"

namespace thresher::strategies::gemm {

using namespace machine;

inline constexpr u32 gather_threads = 128;

/// Copies a row to row `row` by a block. A thread reads several pieces before it writes the first.
TH_DEVICE void gather_row(const GatherParams& params, u32 row, u32 token) {
  using Words = Vector<u32, 4>;
  constexpr u32 together = 8;
  const Global<u8> from = params.from.offset(static_cast<i64>(token * params.from_stride));
  const Global<u8> to = params.to.offset(static_cast<i64>(row * params.to_stride));
  const u32 pieces = params.row_bytes / 16;
  TH_NO_UNROLL
  for (u32 first = launch::thread_index(); first < pieces; first += together * gather_threads) {
    Words words[together];
    TH_UNROLL
    for (u32 i = 0; i < together; ++i) {
      if (const u32 at = first + i * gather_threads; at < pieces) {
        words[i] = from.as<Words>().load(at);
      }
    }
    TH_UNROLL
    for (u32 i = 0; i < together; ++i) {
      if (const u32 at = first + i * gather_threads; at < pieces) {
        to.as<Words>().store(at, words[i]);
      }
    }
  }
  for (u32 at = pieces * 8 + launch::thread_index(); at < params.row_bytes / 2; at += gather_threads) {
    to.as<u16>().store(at, from.as<u16>().load(at));
  }
}

/// A block copies one row.
TH_KERNEL(gather_threads, 1) gather_rows_kernel(TH_GRID_CONSTANT const GatherParams params) {
  launch::release_dependents();
  launch::wait_for_earlier_grids();
  const u32 row = launch::block_index().x;
  const u32 id = static_cast<u32>(params.row_ids.load(row));
  if (id < params.ids_end) {
    gather_row(params, row, id / params.divisor);
  }
}

}  // namespace thresher::strategies::gemm
