#pragma once
/// Keys and values in FP8. The producer copies them into a ring of their own. The other warps of its warpgroup convert
/// them, each its share of every tile. Where they are converted to 16 bits, keys and values of a block come to that
/// ring in turn. Then they go on to the rings of keys and of values. Where FP8 is multiplied, keys come to their ring
/// at once, and values are transposed on their way.
///
/// Barriers of that ring: codes_full[s] counts 1 arrival + the bytes of a tile; codes_empty[s] one arrival of each
/// converting warp. `values_full[s]` counts the same and no bytes, and so does keys_full[s] where keys are converted.
///
/// Values of rows beyond the last key may be anything, and 0·NaN is NaN inside a matrix product: they become zeros.
#include "pipeline/attention/stream_memory.hpp"

namespace thresher::pipeline::attention {

/// The producer's place in the rings that it fills: the FP8 ring, which takes keys and values in turn, or those of keys
/// and of values. Where keys are not converted all rings have as many slots.
template <StreamConfig config>
using LoadCursor = Cursor<config.widens() ? config.code_tiles : config.stages>;

/// The producer's end of one tile of the ring, `columns` wide. The whole warp.
template <StreamConfig config, typename Copy>
TH_DEVICE void load_code_tile(const StreamMemory<config>& memory, Cursor<config.code_tiles>& at, int columns,
                              const Copy& copy) {
  memory.codes_empty(at.slot).wait(Phase{at.phase.parity ^ 1U});
  if (warp::elect()) {
    memory.codes_full(at.slot).arrive_expect_bytes(static_cast<u32>(config.keys * columns));
  }
  copy(Slot{memory.codes(at.slot), memory.codes_full(at.slot)});
  at.advance();
}

/// A block of keys and its values, which the functions copy into a slot.
template <StreamConfig config, typename CopyKeys, typename CopyValues>
TH_DEVICE void load_codes(const StreamMemory<config>& memory, LoadCursor<config>& at, const CopyKeys& copy_keys,
                          const CopyValues& copy_values) {
  if constexpr (config.widens()) {
    load_code_tile<config>(memory, at, config.head_dim, copy_keys);
  } else {
    memory.keys_empty(at.slot).wait(Phase{at.phase.parity ^ 1U});
    if (warp::elect()) {
      memory.keys_full(at.slot).arrive_expect_bytes(config.key_bytes());
    }
    copy_keys(Slot{memory.keys(at.slot), memory.keys_full(at.slot)});
  }
  load_code_tile<config>(memory, at, config.value_dim, copy_values);
}

/// This warp's share of a tile may be multiplied, and its codes may be written over.
template <StreamConfig config>
TH_DEVICE void pass_on(const StreamMemory<config>& memory, Barrier full, Cursor<config.code_tiles>& codes_at) {
  fence::async_shared();
  warp::sync();
  if (warp::elect()) {
    full.arrive();
    memory.codes_empty(codes_at.slot).arrive();
  }
  codes_at.advance();
}

/// Warp `own` of those that convert keys and values or transpose values.
template <StreamConfig config, typename Operation>
TH_DEVICE void prepare_codes(const Operation& operation, const StreamMemory<config>& memory, u32 own) {
  debug::role(config.widens() ? "widen" : "turn", own);
  Cursor<config.code_tiles> codes_at;
  Cursor<config.stages> at;
  const i32 count = operation.template work_count<config>();
  TH_NO_UNROLL
  for (i32 turn = 0;; ++turn) {
    const i32 index = operation.work_index(turn);
    if (index >= count) {
      break;
    }
    const auto work = operation.template work<config>(index);
    TH_NO_UNROLL
    for (i32 block = work.blocks.begin; block < work.blocks.end; ++block) {
      if constexpr (config.widens()) {
        memory.codes_full(codes_at.slot).wait(codes_at.phase);
        memory.keys_empty(at.slot).wait(Phase{at.phase.parity ^ 1U});
        operation.template widen_keys<config>(memory.codes(codes_at.slot), memory.keys(at.slot), own);
        pass_on<config>(memory, memory.keys_full(at.slot), codes_at);
      }
      memory.codes_full(codes_at.slot).wait(codes_at.phase);
      memory.values_empty(at.slot).wait(Phase{at.phase.parity ^ 1U});
      operation.template prepare_values<config>(memory.codes(codes_at.slot), memory.values(at.slot), own,
                                                operation.key_count(work) - block * config.keys);
      pass_on<config>(memory, memory.values_full(at.slot), codes_at);
      at.advance();
    }
  }
}

}  // namespace thresher::pipeline::attention
