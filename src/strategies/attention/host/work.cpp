#include "strategies/attention/host/work.hpp"

#include "strategies/attention/host/tile_work.hpp"

namespace thresher::strategies::attention {

WorkModel pipelined_work(const AttentionProblem& problem, const pipeline::attention::StreamConfig& config,
                         bool dependent_launch) {
  return {{tiled_kernel(problem, {.query_rows = config.rows(),
                                  .key_step = config.keys,
                                  .stages = config.stages,
                                  .multicast = config.cluster,
                                  .pairs_tiles = true,
                                  .dependent_launch = dependent_launch})}};
}

WorkModel split_work(const AttentionProblem& problem, const pipeline::attention::SplitConfig& config,
                     bool dependent_launch) {
  using pipeline::attention::SplitConfig;
  return {{tiled_kernel(problem, {.query_rows = SplitConfig::rows,
                                  .key_step = SplitConfig::chunk,
                                  .stages = SplitConfig::chunks,
                                  .split_keys = config.cluster,
                                  .dependent_launch = dependent_launch})}};
}

}  // namespace thresher::strategies::attention
