#pragma once
#include <cstdint>
#include <string>

#include "pipeline/attention/config.hpp"
#include "strategies/attention/launch.hpp"
#include "thresher/attention.hpp"

namespace thresher::strategies::attention {

/// Adds its launches for sequences with so many queries; other launches of the call take the others.
void add_stream_k(PlannedCall& call, const AttentionProblem& problem, const Knobs& knobs, const DeviceSpec& device,
                  const QueryRange& queries);

/// Where a call's bits must not depend on its sequences: whether this strategy takes those of one query each, and the
/// knobs with which it does. A tile of query rows then has a cluster of its own, whatever the number of tiles.
[[nodiscard]] bool takes_single_queries(const AttentionProblem& problem);
[[nodiscard]] Knobs single_query_knobs(const AttentionProblem& problem);

/// The choice for so many query rows of a sequence, of all heads of a group. `with_stages` sets the stages.
[[nodiscard]] constexpr pipeline::attention::StreamKConfig stream_k_choice(int head_dim, int value_dim, int key_bytes,
                                                                           std::int64_t rows, bool boxes) {
  const int widest = head_dim > value_dim ? head_dim : value_dim;
  const int most = widest > 128 ? 8 : widest > 64 ? 16 : 32;
  const int fitting = rows <= 8 ? 8 : rows <= 16 ? 16 : 32;
  return {.head_dim = head_dim,
          .value_dim = value_dim,
          .rows = fitting < most ? fitting : most,
          .warps = widest * key_bytes > 128 || rows > 16 ? 4 : 8,
          .stages = 2,
          .key_bytes = key_bytes,
          .boxes = boxes};
}

/// Where heads of keys come in pairs: two if rows are narrower than the 128 bytes that L2 loads at a time. More than 16
/// query rows leave too few warps for two.
[[nodiscard]] constexpr int heads_of_chunk(const pipeline::attention::StreamKConfig& config) {
  const std::uint32_t narrower =
      config.key_row_bytes() < config.value_row_bytes() ? config.key_row_bytes() : config.value_row_bytes();
  return config.boxes && narrower < 128 && config.rows <= 16 ? 2 : 1;
}

/// As many stages as fit in `shared_bytes`: at least two, at most eight.
[[nodiscard]] constexpr pipeline::attention::StreamKConfig with_stages(pipeline::attention::StreamKConfig config,
                                                                       std::uint32_t sequences,
                                                                       std::uint32_t shared_bytes) {
  for (config.stages = 8; config.stages > 2 && config.shared_bytes(sequences) > shared_bytes; --config.stages) {
  }
  return config;
}

/// The names of the kernel and of the one that merges parts, which clusters do without.
[[nodiscard]] std::string stream_k_expression(const pipeline::attention::StreamKConfig& config,
                                              const KernelFormats& formats, Logits logits);
[[nodiscard]] std::string merge_parts_expression(const pipeline::attention::StreamKConfig& config,
                                                 const KernelFormats& formats, Logits logits);

}  // namespace thresher::strategies::attention
