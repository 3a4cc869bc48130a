#pragma once
/// The place of a piece of work: sequences, query tiles, and the keys that a query sees.
#include "strategies/attention/device/pages.hpp"

namespace thresher::strategies::attention {

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

TH_DEVICE bool is_variable_length(const Params& params) { return params.cu_seqlens_q != 0; }
TH_DEVICE i32 query_offset(const Params& params, i32 index) { return Global<i32>{params.cu_seqlens_q}.load(index); }
TH_DEVICE i32 key_offset(const Params& params, i32 index) { return Global<i32>{params.cu_seqlens_k}.load(index); }

TH_DEVICE i32 kv_head_of(const Params& params, i32 head) { return params.group == 1 ? head : head / params.group; }

/// The queries of a sequence that are this launch's: all or none.
TH_DEVICE i32 own_queries(const Params& params, i32 queries) {
  return queries >= params.min_queries && queries <= params.max_queries ? queries : 0;
}

/// Flags for invalid lengths of sequences in pages: lane l reads those of sequences l, l + 32, …
TH_DEVICE u32 wrong_lengths(const Params& params) {
  u32 flags = 0;
  TH_NO_UNROLL
  for (i32 batch = static_cast<i32>(warp::lane()); batch < params.batch; batch += 32) {
    const i32 first_query = query_offset(params, batch);
    const i32 end = query_offset(params, batch + 1);
    const i32 keys = used_keys(params, batch);
    flags |= first_query < 0 || end < first_query || end > params.queries ? offsets_clamped : 0U;
    flags |= keys < 0 || keys > params.keys ? lengths_clamped : 0U;
  }
  return flags;
}

/// Whatever cu_seqlens and seqused_k hold, the rows are inside the operands.
TH_DEVICE Sequence sequence_at(const Params& params, i32 batch, i32 head) {
  Sequence sequence{batch, head, kv_head_of(params, head), 0, params.queries, 0, params.keys};
  if (is_variable_length(params)) {
    sequence.first_query = clamp(query_offset(params, batch), 0, params.queries);
    sequence.queries = own_queries(
        params, clamp(query_offset(params, batch + 1), sequence.first_query, params.queries) - sequence.first_query);
    if (is_paged(params)) {
      sequence.keys = clamp(used_keys(params, batch), 0, params.keys);
    } else {
      sequence.first_key = clamp(key_offset(params, batch), 0, params.keys);
      sequence.keys = clamp(key_offset(params, batch + 1), sequence.first_key, params.keys) - sequence.first_key;
    }
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
  /// The tile's first query within its sequence; negative where a first tile lacks rows, or offsets decrease.
  i32 first_row;
};

/// The last sequence whose tiles start at or before `tile`. Sequence b's tiles are numbered from cu_seqlens_q[b]/rows +
/// b: the numbers of two sequences never meet, and few are unused.
TH_DEVICE i32 sequence_of_tile(const Params& params, i32 tile, i32 rows) {
  i32 low = 0;
  i32 high = params.batch - 1;
  while (low < high) {
    const i32 middle = (low + high + 1) / 2;
    if (clamp(query_offset(params, middle), 0, params.queries) / rows + middle <= tile) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

/// Query tile `tile` of one head: of sequence `batch`, or with variable length of all sequences in their order.
TH_DEVICE Work tile_at(const Params& params, i32 batch, i32 head, i32 tile, i32 rows) {
  if (!is_variable_length(params)) {
    return {sequence_at(params, batch, head), tile * rows - params.missing_rows};
  }
  const i32 owner = sequence_of_tile(params, tile, rows);
  const i32 own = tile - (clamp(query_offset(params, owner), 0, params.queries) / rows + owner);
  return {sequence_at(params, owner, head), own * rows};
}

/// The sequence that has a tile, where the tiles of one head are numbered sequence by sequence without gaps.
struct TileOwner {
  i32 batch;  ///< params.batch: there is no such tile
  i32 first_query;
  i32 queries;
  i32 first_tile;
};

/// For a paged KV cache; all lanes of a warp call it. A sequence's queries begin at the greatest offset so far, clamped
/// to the number of queries, as in `stream_k`. No two sequences share a query.
TH_DEVICE TileOwner owner_of_tile(const Params& params, i32 tile, i32 rows) {
  const u32 lane = warp::lane();
  i32 last_offset = clamp(query_offset(params, 0), 0, params.queries);
  i32 tiles_before = 0;
  TH_NO_UNROLL
  for (i32 round = 0; round < params.batch; round += 32) {
    const i32 batch = round + static_cast<i32>(lane);
    const bool is_there = batch < params.batch;
    const i32 end = is_there ? clamp(query_offset(params, batch + 1), 0, params.queries) : 0;
    const i32 greatest = most(running_most(end), last_offset);
    const i32 before = warp::shuffle_up(greatest, 1);
    const i32 first = lane == 0 ? last_offset : before;
    const i32 queries = own_queries(params, greatest - first);
    const i32 tiles = (queries + rows - 1) / rows;
    const i32 end_tile = tiles_before + running_sum(tiles);
    const u32 ended = warp::reduce(end_tile <= tile ? 1U : 0U, [](u32 a, u32 b) { return a + b; });
    if (ended < 32) {
      return {round + static_cast<i32>(ended), warp::shuffle(first, ended), warp::shuffle(queries, ended),
              warp::shuffle(end_tile - tiles, ended)};
    }
    tiles_before = warp::shuffle(end_tile, 31);
    last_offset = warp::shuffle(greatest, 31);
  }
  return {params.batch, 0, 0, tiles_before};
}

/// The tiles of one head.
TH_DEVICE i32 tiles_in_pages(const Params& params, i32 rows) {
  constexpr i32 beyond = 0x7FFFFFFF;
  return owner_of_tile(params, beyond, rows).first_tile;
}

TH_DEVICE Work tile_in_pages(const Params& params, i32 head, i32 tile, i32 rows) {
  const TileOwner owner = owner_of_tile(params, tile, rows);
  const i32 keys = clamp(used_keys(params, owner.batch), 0, params.keys);
  return {{owner.batch, head, kv_head_of(params, head), owner.first_query, owner.queries, 0, keys},
          (tile - owner.first_tile) * rows};
}

/// How persistent clusters share the tiles of all heads. Pieces are numbered: first those of the heads whose tiles are
/// paired, two pieces a pair, then single ones.
struct Pieces {
  i32 pairs;  ///< of pieces that one cluster takes one after the other
  i32 singles;
  i32 paired_heads;
  TH_DEVICE i32 count() const { return 2 * pairs + singles; }
};

/// Under a causal mask a head's last and first tile have as many keys as its last but one and second. All such pairs
/// are alike, but the last round of pairs would leave clusters idle. The tiles of enough heads for two rounds are
/// therefore dealt one by one, the longest first.
TH_DEVICE Pieces pieces_of(const Params& params, i32 clusters) {
  const i32 heads = is_variable_length(params) ? params.heads : params.heads * params.batch;
  const i32 tiles = params.query_tiles;
  if (params.order != Order::paired_then_longest_first) {
    return {0, heads * tiles, 0};
  }
  const i32 single_heads = least(heads, (2 * clusters + tiles - 1) / tiles);
  return {(heads - single_heads) * ((tiles + 1) / 2), single_heads * tiles, heads - single_heads};
}

/// The piece that cluster `own` takes at its `turn`-th turn; count() or more when there is none. Rounds of single
/// pieces alternate their direction: the cluster with the longest of one round has the shortest of the next.
TH_DEVICE i32 piece_at(const Params& params, const Pieces& pieces, i32 clusters, i32 own, i32 turn) {
  const i32 whole_rounds = pieces.pairs / clusters;
  const i32 own_pairs = whole_rounds + (own < pieces.pairs - whole_rounds * clusters ? 1 : 0);
  if (turn < 2 * own_pairs) {
    return 2 * (turn / 2 * clusters + own) + turn % 2;
  }
  const i32 round = turn - own_pairs;
  const bool backward = (round - whole_rounds) % 2 != 0 && params.order != Order::by_head;
  return pieces.pairs + round * clusters + (backward ? clusters - 1 - own : own);
}

/// Head and tile of a piece. Pieces go head by head where the order permits, so that few heads' keys and values are
/// needed at a time. `by_tile` is for sequences in pages: the heads of a group need the same keys, and later tiles of a
/// sequence have more of them.
struct HeadTile {
  i32 head;
  i32 tile;
};

TH_DEVICE HeadTile head_tile(const Params& params, const Pieces& pieces, i32 piece) {
  const i32 tiles = params.query_tiles;
  if (piece < 2 * pieces.pairs) {  // an odd number of tiles leaves a piece without rows
    const i32 slots = (tiles + 1) / 2 * 2;
    const i32 head = piece / slots;
    const i32 pair = (piece - head * slots) / 2;
    const i32 last = tiles - 1 - pair;
    return {head, piece % 2 == 0 ? last : pair != last ? pair : tiles};
  }
  const i32 single = piece - 2 * pieces.pairs;
  if (params.order == Order::paired_then_longest_first) {
    const i32 single_heads = pieces.singles / tiles;
    const i32 from_last = single / single_heads;
    return {pieces.paired_heads + single - from_last * single_heads, tiles - 1 - from_last};
  }
  if (params.order == Order::short_tiles_last && params.missing_rows != 0 && tiles > 1) {
    const i32 whole = pieces.singles / tiles * (tiles - 1);
    const i32 head = single / (tiles - 1);
    return single < whole ? HeadTile{head, single - head * (tiles - 1) + 1} : HeadTile{single - whole, 0};
  }
  if (params.order == Order::by_tile) {
    const i32 tile = single / params.heads;
    return {single - tile * params.heads, tile};
  }
  const i32 head = single / tiles;
  return {head, single - head * tiles};
}

TH_DEVICE Work work_at(const Params& params, const Pieces& pieces, i32 piece, i32 rows) {
  const HeadTile at = head_tile(params, pieces, piece);
  return is_variable_length(params) ? tile_at(params, 0, at.head, at.tile, rows)
                                    : tile_at(params, at.head / params.heads, at.head % params.heads, at.tile, rows);
}

/// Tile `index` of all heads, head by head.
TH_DEVICE Work work_at(const Params& params, i32 index, i32 rows) {
  return work_at(params, Pieces{0, 0, 0}, index, rows);
}

TH_DEVICE bool wants_lse(const Params& params) { return params.lse != 0; }

/// The factor of a sequence's FP8 keys or values.
TH_DEVICE float descale_of(const Descale& descale, i32 batch, i32 kv_head) {
  return descale.data == 0
             ? 1.0F
             : Global<float>{descale.data}.load(batch * descale.batch_stride + kv_head * descale.head_stride);
}

TH_DEVICE i64 element_offset(const Operand& operand, i32 batch, i32 head, i32 row) {
  return batch * operand.batch_stride + head * operand.head_stride + row * operand.row_stride;
}

/// A place in the map of queries, keys or values that are not in pages.
TH_DEVICE At<5> map_place(const Params& params, const Sequence& sequence, i32 row, i32 panel, i32 head) {
  return {0, row, panel, head, is_variable_length(params) ? 0 : sequence.batch};
}

TH_DEVICE void store_lse(const Params& params, const Sequence& sequence, i32 query, float value) {
  Global<float>{params.lse}.store(sequence.batch * params.lse_batch_stride + sequence.head * params.lse_head_stride +
                                      (sequence.first_query + query),
                                  value);
}

}  // namespace thresher::strategies::attention
