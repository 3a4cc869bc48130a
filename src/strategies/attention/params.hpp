#pragma once
/// The parameter of every attention kernel: plain data that the host fills in (launch.cpp). It includes no device code.
#include "machine/tensor_map.hpp"
#include "machine/types.hpp"

namespace thresher::strategies::attention {

using namespace thresher::machine;

/// Rows of one operand: address of elements, strides in elements. With variable length the batch stride is 0 and
/// a sequence starts at its first row.
struct Operand {
  u64 data;
  i64 batch_stride;
  i64 head_stride;
  i64 row_stride;
};

/// A factor of each sequence and head of keys; null data: 1.
struct Descale {
  u64 data;
  i64 batch_stride;
  i64 head_stride;
};

/// A divisor of numbers below 2^31 that is known when a call is planned: quotients by multiplication.
struct Divisor {
  u32 value;
  u32 multiplier;  ///< 2^shift / value, rounded up
  u32 shift;       ///< 31 + log2(value), rounded up
};

/// Keys and values that are [pages, page, heads, columns]: an operand's batch stride is a page's. Maps have rank 5: the
/// columns of a panel, rows of a page, panels, heads, pages. Where copies bring whole rows, and pages are a multiple of
/// 8 rows apart, they are the columns of a panel, 8 rows, panels, groups of 8 rows of all pages, heads.
struct Paging {
  u64 block_table;  ///< int32 [batch, pages of `keys`]; 0: no paged KV cache
  i64 table_batch_stride;
  i64 table_page_stride;
  u64 used_keys;  ///< int32 [batch]
  i64 used_keys_stride;
  u64 status;  ///< flags of each loading warp of each block (strategies/status_words.hpp)
  i32 pages;
  Divisor page;     ///< rows of one
  u32 box_shift;    ///< a TMA box has 2^box_shift rows, which divide a page and a block of keys
  i32 page_groups;  ///< groups of 8 rows from a page to the next, in maps of groups; 0: maps have rows and pages
};

/// A flag of Paging::status, as AttentionStatus has them.
enum PagingFlag : u32 {
  lengths_clamped = 1,  ///< one of seqused_k was negative or more than problem.keys
  pages_clamped = 2,    ///< an entry of block_table named no page
  offsets_clamped = 4,  ///< one of cu_seqlens_q was less than the one before it, negative or more than the queries
};

/// In which order the tiles of a persistent kernel are taken (work.hpp).
enum class Order : i32 { by_head, by_tile, paired_then_longest_first, short_tiles_last };

struct Params {
  /// Rank 5: columns of a panel, rows, panels, heads, batch. Their boxes are the kernel's (pipeline/attention).
  TensorMap query_map;
  TensorMap key_map;
  TensorMap value_map;
  Operand q, k, v, o;
  Descale query_descale;  ///< of FP8 queries
  Descale key_descale;    ///< of FP8 keys
  Descale value_descale;
  u64 lse;  ///< float32; 0: not wanted
  i64 lse_batch_stride;
  i64 lse_head_stride;
  u64 sinks;  ///< float32 [heads]; 0: none
  i64 sinks_stride;
  u64 cu_seqlens_q;  ///< int32 [batch + 1]; 0: fixed length
  u64 cu_seqlens_k;
  i32 batch;
  i32 heads;
  i32 group;    ///< query heads of a key/value head
  i32 queries;  ///< of each sequence, or the total with variable length
  i32 keys;
  i32 window_left;    ///< unbounded: 2^29; lengths are below 2^28, so that no sum overflows
  i32 window_right;   ///< causal included
  float scale_log2;   ///< scale·log2(e); with a softcap, softcap·log2(e)
  float inner_scale;  ///< scale/softcap; 0 without a softcap
  i32 query_tiles;    ///< of a sequence, or of all sequences with variable length
  i32 missing_rows;   ///< rows that the first tile of a sequence lacks, so that the last one ends with it
  Order order;
  /// With variable length: sequences with fewer or more queries are another launch's.
  i32 min_queries;
  i32 max_queries;
  Paging paging;
};

/// How a dot product becomes an exponent. `direct`: the exponential applies a positive factor. `general`: the scale is
/// not positive, or there is a softcap, and the factor precedes the maximum.
enum class Logits : u8 { direct, general };

/// Query rows of a block of `simple`, a warp each.
inline constexpr int simple_warps = 4;

/// How `rows` reads keys and values. `none` reads global memory. The others stage them in shared memory: in `by_row`
/// each thread copies a row, in `coalesced` neighbouring threads read neighbouring addresses.
enum class Staging : u8 { none, by_row, coalesced };
/// Query rows of a block of `rows`. Each has a thread, which keeps the query and its average in registers.
/// `staged_keys` keys, and as many values, are staged at a time.
inline constexpr int row_threads = 128;
inline constexpr int row_head_dim = 64;
inline constexpr int staged_keys = 64;
inline constexpr u32 staged_bytes = 2U * staged_keys * row_head_dim * 2U;

}  // namespace thresher::strategies::attention
