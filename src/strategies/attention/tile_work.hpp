#pragma once
/// The work of an attention in terms of its tile: what `pipelined` and `split` have in common.
#include "strategies/work_model.hpp"
#include "thresher/attention.hpp"

namespace thresher::strategies::attention {

/// A block takes `query_rows` queries of one head and walks over the keys they see in steps of `key_step`.
struct TileWork {
  int query_rows = 128;
  int key_step = 128;
  int stages = 2;      ///< of keys and values; as many as there are steps means no ring at all
  int split_keys = 1;  ///< blocks of a cluster that share the keys of the same queries
  int multicast = 1;   ///< blocks of a cluster that share the loads of the same keys
  /// Under a causal mask a block takes the first and the last tile of queries, the next block the second and the last
  /// but one, …: all pairs have about the same number of keys.
  bool pairs_tiles = false;
  bool dependent_launch = false;
};

/// Keys in pages: sequences of as many queries each as they have on average, with all the keys that they may have.
[[nodiscard]] AttentionProblem equal_sequences(const AttentionProblem& problem);

[[nodiscard]] TiledKernel tiled_kernel(const AttentionProblem& problem, const TileWork& tile);

}  // namespace thresher::strategies::attention
