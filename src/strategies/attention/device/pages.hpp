#pragma once
/// The place of a key in a paged KV cache; it exists whatever lengths and block table hold.
#include "machine/machine.hpp"
#include "strategies/attention/params.hpp"

namespace thresher::strategies::attention {

TH_DEVICE i32 least(i32 a, i32 b) { return a < b ? a : b; }
TH_DEVICE i32 most(i32 a, i32 b) { return a > b ? a : b; }
TH_DEVICE i32 clamp(i32 value, i32 low, i32 high) { return least(most(value, low), high); }

/// Combines this lane's value with those of all lanes before it, in the first `lanes`.
template <typename Combine>
TH_DEVICE i32 running(i32 value, const Combine& combine, u32 lanes = 32) {
  const u32 lane = warp::lane();
  TH_UNROLL
  for (u32 distance = 1; distance < 32; distance *= 2) {
    if (distance >= lanes) {
      break;
    }
    const i32 other = warp::shuffle_up(value, distance);
    value = lane >= distance ? combine(value, other) : value;
  }
  return value;
}
TH_DEVICE i32 running_most(i32 value, u32 lanes = 32) {
  return running(value, [](i32 a, i32 b) { return most(a, b); }, lanes);
}
TH_DEVICE i32 running_sum(i32 value) {
  return running(value, [](i32 a, i32 b) { return a + b; });
}

TH_DEVICE i32 quotient(i32 value, const Divisor& by) {
  return static_cast<i32>(static_cast<u64>(static_cast<u32>(value)) * by.multiplier >> by.shift);
}

TH_DEVICE bool is_paged(const Params& params) { return params.paging.block_table != 0; }

/// The sequence's entry of seqused_k, not clamped.
TH_DEVICE i32 used_keys(const Params& params, i32 batch) {
  return Global<i32>{params.paging.used_keys}.load(batch * params.paging.used_keys_stride);
}

/// Place `place` of the sequence's row of the block table.
TH_DEVICE i32 table_entry(const Paging& paging, i32 batch, i32 place) {
  return Global<i32>{paging.block_table}.load(batch * paging.table_batch_stride + place * paging.table_page_stride);
}

/// The page that an entry names, or the nearest one that exists.
TH_DEVICE i32 existing_page(const Paging& paging, i32 named) { return clamp(named, 0, paging.pages - 1); }

/// A page of the pool and a row in it.
struct PageRow {
  i32 page;
  i32 row;
  bool was_there;
};

TH_DEVICE PageRow page_row(const Paging& paging, i32 batch, i32 key) {
  const i32 place = quotient(key, paging.page);
  const i32 named = table_entry(paging, batch, place);
  const i32 page = existing_page(paging, named);
  return {page, key - place * static_cast<i32>(paging.page.value), page == named};
}

}  // namespace thresher::strategies::attention
