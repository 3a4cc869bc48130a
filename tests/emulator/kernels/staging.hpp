#pragma once
// Threads write a tile into shared memory, one thread has TMA store it, tile after tile through one buffer:
// out[tiles·64, 64] = row number + column, in fp16.
#include "machine/machine.hpp"

namespace planted {

using namespace thresher::machine;

enum class StagingDefect {
  none,
  no_fence,               // ordinary stores, barrier, TMA store
  fence_after_barrier,    // the fence on the wrong side
  no_barrier,             // the storing thread does not wait for the writers
  no_wait_before_reuse,   // commit without wait: the buffer is rewritten while TMA may still read it
  wait_on_wrong_thread,   // every thread waits for its own (empty) groups, not for those of the storing one
  no_wait_at_end,         // the block ends while TMA may still read
  no_commit,              // the last group is never closed
  tiles_overlap,          // each tile is stored one row too early
  half_written,           // half of the threads do not write their row
  misaligned_source,      // the buffer starts in the middle of 128 bytes
  wrong_map,              // a map nobody encoded
  begins_before,          // the first box begins a row before the tensor
  begins_inside_a_chunk,  // boxes begin in the middle of 16 bytes
};

struct StagingParams {
  TensorMap out;  // boxes of 64 × 64
  u32 tiles;
  StagingDefect defect;
};

inline constexpr u32 staging_shared_bytes = 64 * 128 + 128;

TH_KERNEL(64, 1) staging(TH_GRID_CONSTANT const StagingParams params) {
  const auto is = [&](StagingDefect wanted) { return params.defect == wanted; };
  const u32 row = launch::thread_index();
  const bool stores = row == 0;
  const Shared<u8> buffer = launch::shared_memory().offset_bytes(is(StagingDefect::misaligned_source) ? 16 : 0);
  debug::name_shared(buffer, 64 * 128, "staging");
  for (u32 tile = 0; tile < params.tiles; ++tile) {
    if (tile > 0 && !is(StagingDefect::no_wait_before_reuse)) {
      if (stores != is(StagingDefect::wait_on_wrong_thread)) {
        tma::wait_read<0>();
      }
      block::sync();
    }
    if (!(is(StagingDefect::half_written) && row % 2 == 1)) {
      for (u32 column = 0; column < 64; ++column) {
        buffer.as<Half>().store(row * 64 + column, convert::to_half(static_cast<float>(tile * 64 + row + column)));
      }
    }
    if (!is(StagingDefect::no_fence) && !is(StagingDefect::fence_after_barrier)) {
      fence::async_shared();
    }
    if (!is(StagingDefect::no_barrier)) {
      block::sync();
    }
    if (is(StagingDefect::fence_after_barrier)) {
      fence::async_shared();
    }
    if (stores) {
      const TensorMap nothing{};
      const bool is_early = is(StagingDefect::begins_before) || (is(StagingDefect::tiles_overlap) && tile > 0);
      const i32 first_row = static_cast<i32>(tile * 64) - (is_early ? 1 : 0);
      tma::store(is(StagingDefect::wrong_map) ? nothing : params.out, buffer,
                 At{is(StagingDefect::begins_inside_a_chunk) ? 4 : 0, first_row});
      if (!(is(StagingDefect::no_commit) && tile + 1 == params.tiles)) {
        tma::commit();
      }
    }
  }
  if (stores && !is(StagingDefect::no_wait_at_end)) {
    tma::wait_read<0>();
  }
}

}  // namespace planted
