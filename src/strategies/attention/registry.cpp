#include "strategies/attention/registry.hpp"

namespace thresher::strategies::attention {

Registry<AttentionProblem>& registry() {
  static Registry<AttentionProblem> all(
      "attention",
      {&pipelined_strategy(), &split_strategy(), &stream_k_strategy(), &mixed_strategy(), &simple_strategy(),
       &rows_strategy(), &rows_shared_strategy(), &rows_coalesced_strategy()},
      {&blockwise_strategy()});
  return all;
}

}  // namespace thresher::strategies::attention
