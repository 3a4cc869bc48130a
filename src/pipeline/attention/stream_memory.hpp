#pragma once
/// The shared memory of the skeleton of attention over long sequences: queries, rings of keys, of values and of codes,
/// barriers.
#include "pipeline/attention/tile.hpp"
#include "pipeline/ring.hpp"

namespace thresher::pipeline::attention {

template <StreamConfig config>
struct StreamMemory {
  Shared<u8> memory;

  TH_DEVICE Shared<u8> queries() const { return memory; }
  TH_DEVICE Shared<u8> keys(u32 slot) const {
    return memory.offset_bytes(config.query_bytes() + slot * config.key_bytes());
  }
  TH_DEVICE Shared<u8> values(u32 slot) const {
    return keys(static_cast<u32>(config.stages)).offset_bytes(slot * config.value_bytes());
  }
  /// With codes: keys and values in turn, or values alone.
  TH_DEVICE Shared<u8> codes(u32 slot) const {
    return memory.offset_bytes(config.codes_offset() + slot * config.code_tile_bytes());
  }
  TH_DEVICE Barrier barrier(u32 index) const {
    return Barrier{memory.offset_bytes(config.barrier_offset()).address}.offset(index);
  }
  TH_DEVICE Barrier queries_full() const { return barrier(0); }
  TH_DEVICE Barrier queries_empty() const { return barrier(1); }
  TH_DEVICE Barrier keys_full(u32 slot) const { return barrier(2 + slot); }
  TH_DEVICE Barrier keys_empty(u32 slot) const { return barrier(2 + config.stages + slot); }
  TH_DEVICE Barrier values_full(u32 slot) const { return barrier(2 + 2 * config.stages + slot); }
  TH_DEVICE Barrier values_empty(u32 slot) const { return barrier(2 + 3 * config.stages + slot); }

  TH_DEVICE Barrier codes_full(u32 slot) const { return barrier(2 + 4 * config.stages + slot); }
  TH_DEVICE Barrier codes_empty(u32 slot) const { return barrier(2 + 4 * config.stages + config.code_tiles + slot); }

  /// With pages, but not with FP8: values that the producer cleans before they are full.
  TH_DEVICE Barrier values_landed() const { return barrier(2 + 4 * config.stages); }

  TH_DEVICE void init() const {
    constexpr u32 warps = static_cast<u32>(StreamConfig::widening_warps);
    constexpr u32 loaders = static_cast<u32>(config.sharing_warps());
    queries_full().init(1);
    queries_empty().init(static_cast<u32>(config.math_warpgroups) * 4);
    TH_UNROLL
    for (u32 slot = 0; slot < static_cast<u32>(config.stages); ++slot) {
      keys_full(slot).init(config.widens() ? warps : loaders);
      keys_empty(slot).init(static_cast<u32>(config.math_warpgroups * config.multicast));
      values_full(slot).init(config.has_codes() ? warps : loaders);
      values_empty(slot).init(static_cast<u32>(config.math_warpgroups * config.multicast));
      debug::name_barrier(keys_full(slot), "keys_full", slot);
      debug::name_barrier(keys_empty(slot), "keys_empty", slot);
      debug::name_barrier(values_full(slot), "values_full", slot);
      debug::name_barrier(values_empty(slot), "values_empty", slot);
    }
    if constexpr (config.has_codes()) {
      TH_UNROLL
      for (u32 slot = 0; slot < static_cast<u32>(config.code_tiles); ++slot) {
        codes_full(slot).init(1);
        codes_empty(slot).init(warps);
        debug::name_barrier(codes_full(slot), "codes_full", slot);
        debug::name_barrier(codes_empty(slot), "codes_empty", slot);
      }
    } else if constexpr (config.paged) {
      values_landed().init(loaders);
      debug::name_barrier(values_landed(), "values_landed");
    }
    debug::name_barrier(queries_full(), "queries_full");
    debug::name_barrier(queries_empty(), "queries_empty");
    fence::barrier_init();
  }
};

}  // namespace thresher::pipeline::attention
