#pragma once
#include <string>

#include "pipeline/attention/config.hpp"
#include "strategies/attention/params.hpp"
#include "thresher/attention.hpp"

namespace thresher::strategies::attention {

/// The choice for direct logits (docs/design/kernels/attention.md). `whole`: no row or key is missing or masked.
constexpr pipeline::attention::SplitConfig split_choice(int head_dim, int cluster, bool whole) {
  // Eight blocks that exchange 128 columns leave no registers for finer steps.
  const bool crowded = cluster == 8 && head_dim == 128;
  return {.head_dim = head_dim,
          .cluster = cluster,
          .whole = whole,
          .parts = crowded ? 1 : 4,
          .inspect_early = whole && !crowded,
          .meet_early = true};
}

/// The kernel's name expression.
[[nodiscard]] std::string split_expression(const pipeline::attention::SplitConfig& config, Format format,
                                           Logits logits);

}  // namespace thresher::strategies::attention
