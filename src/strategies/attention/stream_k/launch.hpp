#pragma once
/// The launches of `stream_k`, two or, with clusters, one: their parameter, their tensor maps and their workspace.
#include <string>

#include "pipeline/attention/config.hpp"
#include "strategies/attention/launch.hpp"
#include "strategies/planned_call.hpp"
#include "thresher/attention.hpp"

namespace thresher::strategies::attention {

/// The names of the kernels, and how they are launched.
struct StreamKKernels {
  std::string multiply;
  std::string merge;  ///< not of clusters
  bool dependent_launch = false;
};

/// Tiles of query rows, no fewer than a call can have; one sequence has no more.
[[nodiscard]] std::int64_t max_tiles(const AttentionProblem& problem, const pipeline::attention::StreamKConfig& config);

/// Chunks of keys of a tile, no fewer than it can have.
[[nodiscard]] std::int64_t max_chunks(const AttentionProblem& problem,
                                      const pipeline::attention::StreamKConfig& config);

/// Chunks of keys of all tiles, no fewer than a call can have.
[[nodiscard]] double max_units(const AttentionProblem& problem, const pipeline::attention::StreamKConfig& config);

/// Adds workspace and launches. `blocks` are those that a GPU holds at once.
void add_stream_k(PlannedCall& call, const AttentionProblem& problem, const pipeline::attention::StreamKConfig& config,
                  const StreamKKernels& kernels, int blocks, const QueryRange& queries);

}  // namespace thresher::strategies::attention
