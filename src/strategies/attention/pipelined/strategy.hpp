#pragma once
#include <cstdint>
#include <string>

#include "pipeline/attention/config.hpp"
#include "strategies/attention/launch.hpp"
#include "thresher/attention.hpp"

namespace thresher::strategies::attention {

/// Adds its launch for sequences with so many queries; other launches of the call take the others.
void add_pipelined(PlannedCall& call, const AttentionProblem& problem, const Knobs& knobs, const DeviceSpec& device,
                   const QueryRange& queries);

/// As many keys as leave room for the pipelines in shared memory, and for scores and weights beside the accumulators.
constexpr int stream_keys(int head_dim, int value_dim) {
  return head_dim > 192 && value_dim > 192                        ? 64  // 80 have room and are slower
         : value_dim > 192 || (head_dim > 192 && value_dim > 128) ? 80
         : value_dim > 128                                        ? 112
         : head_dim > 192                                         ? 96
                                                                  : 128;
}

/// The choice, as measured (docs/design/kernels/attention.md). `few_queries`: no more than one warpgroup's rows;
/// `direct`: logits that nothing but the scale changes.
constexpr pipeline::attention::StreamConfig stream_choice(int head_dim, int value_dim, bool few_queries, bool direct) {
  const bool narrow = head_dim == 64 && value_dim == 64;
  const int math_warpgroups = few_queries ? 1 : narrow && direct ? 3 : 2;
  return {.head_dim = head_dim,
          .value_dim = value_dim,
          .keys = stream_keys(head_dim, value_dim),
          .stages = 2,
          .math_warpgroups = math_warpgroups,
          .multicast = 1,
          .queries_in_registers = math_warpgroups != 3 && head_dim <= 128 && value_dim <= 128,
          .take_turns = math_warpgroups > 1,
          .hold_softmax = !narrow,
          .base_descriptors = !narrow};
}

constexpr std::uint32_t max_shared_bytes = 227 * 1024;

/// For keys and values in FP8. Where they are converted to 16 bits, as many tiles of FP8 values as fit are kept. There
/// is at least one tile each of keys and values, and at most two. Else there is one of values for each stage.
constexpr pipeline::attention::StreamConfig with_code_tiles(pipeline::attention::StreamConfig config) {
  config.code_tiles = config.multiplies_codes ? config.stages : 4;
  while (!config.multiplies_codes && config.code_tiles > 2 && config.shared_bytes() > max_shared_bytes) {
    --config.code_tiles;
  }
  return config;
}

/// The operands that are FP8.
enum class Codes { none, keys, queries_and_keys };

/// Keys of a block where FP8 is multiplied: as many as leave registers for a block's product beside the accumulators.
/// Warps that look up pages leave fewer registers.
constexpr int multiplied_keys(int head_dim, int value_dim, bool direct, bool paged) {
  const bool wide = head_dim > 128 || value_dim > 128;
  const bool narrow = head_dim == 64 && value_dim == 64;
  return wide ? (paged ? 96 : 128) : narrow || direct ? 160 : 96;
}

/// The same with FP8 and a paged KV cache. FP8 with wide heads leaves room for fewer keys, and warps that convert FP8
/// leave fewer registers. In pages a third stage hides copies that come late, where shared memory has room for it.
constexpr pipeline::attention::StreamConfig stream_choice(int head_dim, int value_dim, bool few_queries, bool direct,
                                                          Codes codes, bool paged) {
  const bool wide = head_dim > 128 || value_dim > 128;
  const bool narrow = head_dim == 64 && value_dim == 64;
  pipeline::attention::StreamConfig config = stream_choice(head_dim, value_dim, few_queries, direct);
  config.paged = paged;
  if (codes == Codes::keys) {
    config.keys = head_dim > 192 || value_dim > 192 ? 64 : config.keys;
    config.queries_in_registers = config.queries_in_registers && (direct || head_dim + value_dim == 128);
    config = with_code_tiles(config);
  } else if (codes == Codes::queries_and_keys) {
    config.multiplies_codes = true;
    config.keys = multiplied_keys(head_dim, value_dim, direct, paged);
    config.scores_ahead = paged && !wide && !narrow;
    config.math_warpgroups = few_queries ? 1 : wide || config.scores_ahead ? 2 : 3;
    config.queries_in_registers = false;
    config.take_turns = false;
    config.hold_softmax = config.scores_ahead;
    config.base_descriptors = true;
    config = with_code_tiles(config);
  } else if (paged) {
    config.stages = 3;
    config.stages = config.shared_bytes() > max_shared_bytes ? 2 : 3;
  }
  return config;
}

/// The kernel's name expression.
[[nodiscard]] std::string pipelined_expression(const pipeline::attention::StreamConfig& config, Format format,
                                               Logits logits);

}  // namespace thresher::strategies::attention
