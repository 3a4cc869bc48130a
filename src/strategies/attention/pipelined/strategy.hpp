#pragma once
#include <string>

#include "pipeline/attention/config.hpp"
#include "strategies/attention/params.hpp"
#include "strategies/strategy.hpp"
#include "thresher/attention.hpp"

namespace thresher::strategies::attention {

/// For long sequences: loader and math warpgroups, and rings of keys and values.
const Strategy<AttentionProblem>& pipelined_strategy();

/// What is chosen, as measured (docs/kernels/attention.md). `few_queries`: no more than one warpgroup's rows;
/// `direct`: logits that nothing but the scale changes.
constexpr pipeline::attention::StreamConfig stream_choice(int head_dim, bool few_queries, bool direct) {
  const bool narrow = head_dim == 64;
  const int math_warpgroups = few_queries ? 1 : narrow && direct ? 3 : 2;
  return {.head_dim = head_dim,
          .keys = 128,
          .stages = 2,
          .math_warpgroups = math_warpgroups,
          .multicast = 1,
          .queries_in_registers = math_warpgroups != 3,
          .take_turns = math_warpgroups > 1,
          .hold_softmax = !narrow,
          .base_descriptors = !narrow};
}

/// The kernel's name expression.
[[nodiscard]] std::string pipelined_expression(const pipeline::attention::StreamConfig& config, Format format,
                                               Logits logits);

}  // namespace thresher::strategies::attention
