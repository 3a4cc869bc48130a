#pragma once
/// The work model of tiles of queries, which `pipelined` and `split` share.
#include <vector>

#include "strategies/work_model.hpp"
#include "thresher/attention.hpp"

namespace thresher::strategies::attention {

/// A block takes `query_rows` queries of one head and goes over the keys they see in steps of `key_step`.
struct TileWork {
  int query_rows = 128;
  int key_step = 128;
  int stages = 2;      ///< of keys and values; with a stage for every step none is reused
  int split_keys = 1;  ///< blocks of a cluster that share the keys of the same queries
  int multicast = 1;   ///< blocks of a cluster that share the loads of the same keys
  /// Under a causal mask a block takes the first and the last tile of queries, and the next block the second and the
  /// last but one. All pairs have about the same number of keys.
  bool pairs_tiles = false;
  bool dependent_launch = false;
};

/// The sequences assumed for a paged KV cache, whose lengths the host does not know: problems of fixed length with the
/// maximum number of keys. All have the same number of queries where that is possible. Else one has as many as it may,
/// and the others share the rest.
[[nodiscard]] std::vector<AttentionProblem> assumed_sequences(const AttentionProblem& problem);

[[nodiscard]] TiledKernel tiled_kernel(const AttentionProblem& problem, const TileWork& tile);

}  // namespace thresher::strategies::attention
