#pragma once
/// The producer of attention over long sequences with a paged KV cache. A lane has a box of every block of keys, and
/// copies it panel by panel, or in 16 bits whole. Where several warps load, half of them copy keys and half values.
/// Each has its share of the boxes.
///
/// Values of rows beyond the last key may be anything, and 0·NaN is NaN inside a matrix product. In a sequence's last
/// block warps therefore wait for them on values_landed, and the first one writes zeros there. Only then the slot is
/// full.
///
/// Work without rows is skipped by all warps: where lengths differ there is much of it.
#include "pipeline/attention/stream_codes.hpp"
#include "pipeline/attention/stream_memory.hpp"

namespace thresher::pipeline::attention {

/// Zeros in the rows [first, config.keys) of a tile of values. All lanes of a warp.
template <StreamConfig config>
TH_DEVICE void clear_rows(Shared<u8> tile, i32 first) {
  constexpr u32 pieces_of_row = panel_row_bytes / 16;
  constexpr u32 pieces_of_group = pieces_of_row * group_rows;
  constexpr TileLayout layout = config.layout(config.value_dim);
  TH_NO_UNROLL
  for (u32 piece = static_cast<u32>(first) * pieces_of_row + warp::lane(); piece < config.keys * pieces_of_row;
       piece += 32) {
    const u32 group = piece / pieces_of_group * layout.group_bytes;
    const Shared<u8> at = tile.offset_bytes(group + piece % pieces_of_group * 16);
    TH_UNROLL
    for (u32 panel = 0; panel < static_cast<u32>(config.value_dim / panel_columns); ++panel) {
      at.offset_bytes(panel * layout.panel_bytes).template as<Vector<u32, 4>>().store(0, {});
    }
  }
}

/// The share of one of the loading warps.
template <typename Pages>
struct PageShare {
  const Pages& pages;
  u32 own;  ///< of the warps that share the copies of an operand
};

/// Values of a block of which only the first `there` rows hold a key.
template <StreamConfig config, typename Operation, typename Pages>
TH_DEVICE void load_last_values(const Operation& operation, const StreamMemory<config>& memory, u32 slot, Phase& landed,
                                const PageShare<Pages>& share, i32 there) {
  const Barrier arrived = memory.values_landed();
  if (warp::elect()) {
    arrived.arrive_expect_bytes(operation.template own_bytes<config, config.value_dim>(share.own));
  }
  operation.template copy_value_pages<config>(Slot{memory.values(slot), arrived}, share.pages, share.own);
  arrived.wait(landed);  // all of them: one that is ahead would arrive twice for one phase
  landed.flip();
  if (share.own == 0) {
    clear_rows<config>(memory.values(slot), there);
    fence::async_shared();
    warp::sync();
  }
  if (warp::elect()) {
    memory.values_full(slot).arrive();
  }
}

template <StreamConfig config, typename Operation, typename Pages>
TH_DEVICE void load_keys(const Operation& operation, const StreamMemory<config>& memory,
                         const Cursor<config.stages>& at, const PageShare<Pages>& share) {
  memory.keys_empty(at.slot).wait(Phase{at.phase.parity ^ 1U});
  if (warp::elect()) {
    memory.keys_full(at.slot).arrive_expect_bytes(operation.template own_bytes<config, config.head_dim>(share.own));
  }
  operation.template copy_key_pages<config>(Slot{memory.keys(at.slot), memory.keys_full(at.slot)}, share.pages,
                                            share.own);
}

template <StreamConfig config, typename Operation, typename Pages>
TH_DEVICE void load_values(const Operation& operation, const StreamMemory<config>& memory,
                           const Cursor<config.stages>& at, Phase& landed, const PageShare<Pages>& share, i32 there) {
  memory.values_empty(at.slot).wait(Phase{at.phase.parity ^ 1U});
  if (there < config.keys) {
    load_last_values<config>(operation, memory, at.slot, landed, share, there);
  } else {
    if (warp::elect()) {
      memory.values_full(at.slot).arrive_expect_bytes(
          operation.template own_bytes<config, config.value_dim>(share.own));
    }
    operation.template copy_value_pages<config>(Slot{memory.values(at.slot), memory.values_full(at.slot)}, share.pages,
                                                share.own);
  }
}

/// A warp's share of a block of keys or of its values.
template <StreamConfig config, typename Operation, typename Pages>
TH_DEVICE void load_block_of_pages(const Operation& operation, const StreamMemory<config>& memory,
                                   Cursor<config.stages>& at, Phase& landed, const PageShare<Pages>& warp, i32 there) {
  constexpr auto sharing = static_cast<u32>(config.sharing_warps());
  const PageShare<Pages> share{warp.pages, warp.own % sharing};
  if (warp.own < sharing) {
    load_keys<config>(operation, memory, at, share);
  } else {
    load_values<config>(operation, memory, at, landed, share, there);
  }
  at.advance();
}

/// Warp `own` of those that load. The first one copies queries and reports.
template <StreamConfig config, typename Operation>
TH_DEVICE void load_pages(const Operation& operation, const StreamMemory<config>& memory, u32 own) {
  debug::role("load", own);
  Phase queries_phase{};
  Phase landed{};
  LoadCursor<config> at;
  u32 flags = 0;
  const i32 count = operation.template work_count<config>();
  TH_NO_UNROLL
  for (i32 turn = 0;; ++turn) {
    const i32 index = operation.work_index(turn);
    if (index >= count) {
      break;
    }
    const auto work = operation.template work<config>(index);
    if (own == 0) {
      memory.queries_empty().wait(Phase{queries_phase.parity ^ 1U});
      if (warp::elect()) {
        memory.queries_full().arrive_expect_bytes(config.query_bytes());
        operation.copy_queries(Slot{memory.queries(), memory.queries_full()}, work);
      }
      queries_phase.flip();
    }
    if (work.blocks.begin >= work.blocks.end) {
      continue;
    }
    auto pages = operation.template pages<config>(work, work.blocks.begin);
    TH_NO_UNROLL
    for (i32 block = work.blocks.begin; block < work.blocks.end; ++block) {
      const auto next = operation.template pages<config>(work, block + 1);  // asked for before the waits
      flags |= operation.flags_of(pages);
      if constexpr (config.has_codes()) {
        load_codes<config>(
            memory, at, [&](const Slot& slot) { operation.template copy_key_pages<config>(slot, pages, own); },
            [&](const Slot& slot) { operation.template copy_value_pages<config>(slot, pages, own); });
      } else {
        load_block_of_pages<config>(operation, memory, at, landed, PageShare<decltype(pages)>{pages, own},
                                    operation.key_count(work) - block * config.keys);
      }
      pages = next;
    }
  }
  if (own == 0) {
    operation.report(flags);
  }
}

}  // namespace thresher::pipeline::attention
