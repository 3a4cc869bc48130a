#pragma once
/// What the kernels of `stream_k` receive: plain data that the host fills in.
#include "pipeline/attention/config.hpp"
#include "strategies/attention/params.hpp"

namespace thresher::strategies::attention {

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

struct StreamKParams {
  Params call;
  // What a call without clusters leaves to its second launch; not read with clusters.
  u64 header;      ///< how many blocks the first launch had
  u64 left;        ///< LeftItem of each block
  u64 parts;       ///< float32 [2·blocks, tile_rows, value_dim], not divided by their sums
  u64 parts_sums;  ///< float32 [2·blocks, tile_rows, 2]: shift and sum
  i32 max_blocks;  ///< of the first launch
  i32 head_sets;   ///< of heads of keys that a chunk has
  Divisor group;   ///< heads of one
};

}  // namespace thresher::strategies::attention
