#pragma once
/// Keys and values that come as codes of a byte: the loader copies them into a ring of their own, keys and values of a
/// block one after the other, and the other warps of its warpgroup widen them into the rings of keys and of values,
/// each its share of every tile.
///
/// Barriers of that ring: codes_full[s] 1 arrival + the bytes of a tile of codes; codes_empty[s] one arrival of each
/// widening warp. keys_full[s] and values_full[s] take one arrival of each of them too, and no bytes.
///
/// Values of rows that are no key may be anything, and 0·NaN is NaN inside a matrix product: they are widened to zeros.
#include "pipeline/attention/stream_memory.hpp"

namespace thresher::pipeline::attention {

/// The loader's end of one tile of the ring. The whole warp.
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

/// A block of keys and its values.
template <StreamConfig config, typename Operation, typename Pages>
TH_DEVICE void load_codes(const Operation& operation, const StreamMemory<config>& memory, Cursor<config.code_tiles>& at,
                          const Pages& pages) {
  load_code_tile<config>(memory, at, config.head_dim,
                         [&](const Slot& slot) { operation.template copy_key_pages<config>(slot, pages); });
  load_code_tile<config>(memory, at, config.value_dim,
                         [&](const Slot& slot) { operation.template copy_value_pages<config>(slot, pages); });
}

/// What this warp has written of a tile may be multiplied, and the codes may be written over.
template <StreamConfig config>
TH_DEVICE void hand_over(const StreamMemory<config>& memory, Barrier full, Cursor<config.code_tiles>& codes_at) {
  fence::async_shared();
  warp::sync();
  if (warp::elect()) {
    full.arrive();
    memory.codes_empty(codes_at.slot).arrive();
  }
  codes_at.advance();
}

/// Warp `own` of those that widen.
template <StreamConfig config, typename Operation>
TH_DEVICE void widen(const Operation& operation, const StreamMemory<config>& memory, u32 own) {
  debug::role("widen", own);
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
      memory.codes_full(codes_at.slot).wait(codes_at.phase);
      memory.keys_empty(at.slot).wait(Phase{at.phase.parity ^ 1U});
      operation.template widen_keys<config>(memory.codes(codes_at.slot), memory.keys(at.slot), own);
      hand_over<config>(memory, memory.keys_full(at.slot), codes_at);
      memory.codes_full(codes_at.slot).wait(codes_at.phase);
      memory.values_empty(at.slot).wait(Phase{at.phase.parity ^ 1U});
      operation.template widen_values<config>(memory.codes(codes_at.slot), memory.values(at.slot), own,
                                              operation.key_count(work) - block * config.keys);
      hand_over<config>(memory, memory.values_full(at.slot), codes_at);
      at.advance();
    }
  }
}

}  // namespace thresher::pipeline::attention
