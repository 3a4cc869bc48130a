#pragma once
/// Rows of A to where the copy engine finds them: those of one expert one behind the other.
#include "machine/global.hpp"
#include "machine/launch.hpp"

namespace thresher::strategies::grouped_gemm {

using namespace machine;

struct GatherParams {
  Global<u8> from;  ///< rows of row_bytes, from_stride bytes apart
  Global<u8> to;    ///< the same, to_stride bytes apart
  Global<i32> row_ids;
  u64 from_stride = 0;
  u64 to_stride = 0;
  u32 ids_end = 0;  ///< ids from there on, as unsigned numbers, are of no row
  u32 divisor = 1;
  u32 row_bytes = 0;  ///< a multiple of 2
};

inline constexpr u32 gather_threads = 128;

/// A block copies one row; strides and addresses are multiples of 16 bytes.
TH_KERNEL(gather_threads, 1) gather_rows_kernel(TH_GRID_CONSTANT const GatherParams params) {
  launch::release_dependents();
  launch::wait_for_earlier_grids();
  const u32 row = launch::block_index().x;
  const u32 id = static_cast<u32>(params.row_ids.load(row));
  if (id >= params.ids_end) {
    return;
  }
  using Words = Vector<u32, 4>;
  const Global<u8> from = params.from.offset(static_cast<i64>(id / params.divisor * params.from_stride));
  const Global<u8> to = params.to.offset(static_cast<i64>(row * params.to_stride));
  const u32 chunks = params.row_bytes / 16;
  for (u32 chunk = launch::thread_index(); chunk < chunks; chunk += gather_threads) {
    to.as<Words>().store(chunk, from.as<Words>().load(chunk));
  }
  for (u32 at = chunks * 8 + launch::thread_index(); at < params.row_bytes / 2; at += gather_threads) {
    to.as<u16>().store(at, from.as<u16>().load(at));
  }
}

}  // namespace thresher::strategies::grouped_gemm
