#pragma once
/// The parameter of `stream_k`'s kernels: plain data that the host fills in.
#include "pipeline/attention/config.hpp"
#include "strategies/attention/params.hpp"

namespace thresher::strategies::attention {

/// An item that other blocks continued. The block that began it writes it for the second launch.
struct SplitItem {
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
  // The first of two launches writes them for the second; not read with clusters.
  u64 block_count;  ///< of the first launch
  u64 split_items;  ///< SplitItem of each block
  u64 parts;        ///< float32 [2·blocks, tile_rows, value_dim], not divided by their sums
  u64 part_sums;    ///< float32 [2·blocks, tile_rows, 2]: maximum and sum
  i32 max_blocks;   ///< of the first launch
  i32 head_sets;    ///< sets of the heads of keys of a chunk
  Divisor group;    ///< heads of one
};

}  // namespace thresher::strategies::attention
