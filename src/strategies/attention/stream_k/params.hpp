#pragma once
/// What the kernels of `stream_k` receive: plain data that the host fills in.
#include "pipeline/attention/config.hpp"
#include "strategies/attention/params.hpp"

namespace thresher::strategies::attention {

/// A divisor of numbers below 2^31 that is known when a call is planned: quotients by multiplication.
struct Divisor {
  u32 value;
  u32 multiplier;  ///< 2^shift / value, rounded up
  u32 shift;       ///< 31 + log2(value), rounded up
};

/// A scale of each sequence and head of keys; null data: 1.
struct Descale {
  u64 data;
  i64 batch_stride;
  i64 head_stride;
};

/// What the first launch leaves to the second, by the block that began it: an item that other blocks went on with.
struct LeftItem {
  i32 parts;  ///< 0: none
  i32 batch;
  i32 kv_head;
  i32 first_query;
  i32 queries;
  i32 keys;
  i32 first_row;
  i32 rows;
};

/// A flag of StreamKParams::status.
enum StreamKFlag : u32 {
  lengths_clamped = 1,  ///< of seqused_k, one was negative or more than problem.keys
  pages_clamped = 2,    ///< of block_table, one was not there
};

/// Keys and values are [pages, page, heads, columns]: an operand's batch stride is a page's. Maps have rank 5: the
/// columns of a panel, rows of a page, panels, heads, pages.
struct StreamKParams {
  Params call;
  u64 block_table;  ///< int32 [batch, pages of `keys`]
  i64 table_batch_stride;
  i64 table_page_stride;
  u64 used_keys;  ///< int32 [batch]
  i64 used_keys_stride;
  Descale key_descale;
  Descale value_descale;
  u64 status;       ///< how many words follow, and flags of each loading warp of each block
  u64 header;       ///< how many blocks shared the units
  u64 left;         ///< LeftItem of each block
  u64 parts;        ///< float32 [2·blocks, rows, value_dim], not divided by their sums
  u64 parts_sums;   ///< float32 [2·blocks, rows, 2]: shift and sum
  i32 most_blocks;  ///< that the workspace has room for
  i32 kv_heads;
  i32 pages;
  Divisor group;  ///< heads of one
  Divisor page;   ///< rows of one
  u32 box_shift;  ///< a box has 2^box_shift rows, which divide a page and a chunk
};

}  // namespace thresher::strategies::attention
