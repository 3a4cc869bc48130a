#pragma once
/// Where a piece of work lies: sequences, query tiles, and the keys that a query sees.
#include "kernels/attention/params.hpp"
#include "machine/machine.hpp"

namespace thresher::kernels::attention {

/// One head of one sequence.
struct Sequence {
  i32 batch;
  i32 head;
  i32 kv_head;
  i32 first_query;  ///< row of its first query in the operand: 0 with fixed length
  i32 queries;
  i32 first_key;
  i32 keys;
};

TH_DEVICE i32 least(i32 a, i32 b) { return a < b ? a : b; }
TH_DEVICE i32 most(i32 a, i32 b) { return a > b ? a : b; }
TH_DEVICE i32 clamp(i32 value, i32 low, i32 high) { return least(most(value, low), high); }

TH_DEVICE bool is_variable_length(const Params& params) { return params.cu_seqlens_q != 0; }
TH_DEVICE i32 query_offset(const Params& params, i32 index) { return Global<i32>{params.cu_seqlens_q}.load(index); }
TH_DEVICE i32 key_offset(const Params& params, i32 index) { return Global<i32>{params.cu_seqlens_k}.load(index); }

/// Whatever cu_seqlens holds, the rows are inside the operands.
TH_DEVICE Sequence sequence_at(const Params& params, i32 batch, i32 head) {
  const i32 kv_head = params.group == 1 ? head : head / params.group;
  Sequence sequence{batch, head, kv_head, 0, params.queries, 0, params.keys};
  if (is_variable_length(params)) {
    sequence.first_query = clamp(query_offset(params, batch), 0, params.queries);
    sequence.queries =
        clamp(query_offset(params, batch + 1), sequence.first_query, params.queries) - sequence.first_query;
    sequence.first_key = clamp(key_offset(params, batch), 0, params.keys);
    sequence.keys = clamp(key_offset(params, batch + 1), sequence.first_key, params.keys) - sequence.first_key;
  }
  return sequence;
}

/// The keys [begin, end) that a query sees; end ≥ begin.
struct Visible {
  i32 begin;
  i32 end;
};

/// `diagonal` is the key under the diagonal: query + keys − queries.
TH_DEVICE Visible visible_from(const Params& params, i32 diagonal, i32 keys) {
  const i32 begin = clamp(diagonal - params.window_left, 0, keys);
  return {begin, clamp(diagonal + params.window_right + 1, begin, keys)};
}

TH_DEVICE Visible visible_keys(const Params& params, const Sequence& sequence, i32 query) {
  return visible_from(params, query + sequence.keys - sequence.queries, sequence.keys);
}

/// A query tile of one head.
struct Work {
  Sequence sequence;
  i32 first_row;  ///< the tile's first query within its sequence
};

/// The last sequence whose tiles start at or before `tile`. Sequence b's tiles are numbered from cu_seqlens_q[b]/rows +
/// b: the numbers of two sequences never meet, and few are unused.
TH_DEVICE i32 sequence_of_tile(const Params& params, i32 tile, i32 rows) {
  i32 low = 0;
  i32 high = params.batch - 1;
  while (low < high) {
    const i32 middle = (low + high + 1) / 2;
    if (query_offset(params, middle) / rows + middle <= tile) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

/// Query tile `tile` of one head: of sequence `batch`, or with variable length of all sequences in turn.
TH_DEVICE Work tile_at(const Params& params, i32 batch, i32 head, i32 tile, i32 rows) {
  if (!is_variable_length(params)) {
    return {sequence_at(params, batch, head), tile * rows};
  }
  const i32 owner = sequence_of_tile(params, tile, rows);
  const i32 own = tile - (query_offset(params, owner) / rows + owner);
  return {sequence_at(params, owner, head), own * rows};
}

/// Pieces of work of all heads (see work_at).
TH_DEVICE i32 work_count(const Params& params) {
  const i32 heads = is_variable_length(params) ? params.heads : params.heads * params.batch;
  return heads * (params.folded != 0 ? (params.query_tiles + 1) / 2 * 2 : params.query_tiles);
}

/// Work `index`, head by head, so that few heads' keys and values are needed at a time. Folded, two neighbours are the
/// last and the first query tile, the last but one and the second …: under a causal mask every such pair has as many
/// keys as any other. An odd number of tiles leaves a piece without rows.
TH_DEVICE Work work_at(const Params& params, i32 index, i32 rows) {
  const i32 tiles = params.query_tiles;
  const i32 slots = params.folded != 0 ? (tiles + 1) / 2 * 2 : tiles;
  const i32 head = index / slots;
  i32 tile = index - head * slots;
  if (params.folded != 0) {
    const i32 pair = tile / 2;
    const i32 last = tiles - 1 - pair;
    tile = tile % 2 == 0 ? last : pair != last ? pair : tiles;
  }
  return is_variable_length(params) ? tile_at(params, 0, head, tile, rows)
                                    : tile_at(params, head / params.heads, head % params.heads, tile, rows);
}

TH_DEVICE bool wants_lse(const Params& params) { return params.lse != 0; }

TH_DEVICE i64 element_offset(const Operand& operand, i32 batch, i32 head, i32 row) {
  return batch * operand.batch_stride + head * operand.head_stride + row * operand.row_stride;
}

TH_DEVICE void store_lse(const Params& params, const Sequence& sequence, i32 query, float value) {
  Global<float>{params.lse}.store(sequence.batch * params.lse_batch_stride + sequence.head * params.lse_head_stride +
                                      (sequence.first_query + query),
                                  value);
}

}  // namespace thresher::kernels::attention
