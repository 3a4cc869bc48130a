#pragma once
/// The two launches of `stream_k`: their parameter, their tensor maps and their workspace.
#include <string>

#include "machine/tensor_map.hpp"
#include "pipeline/attention/config.hpp"
#include "strategies/planned_call.hpp"
#include "thresher/attention.hpp"

namespace thresher::strategies::attention {

/// The names of the kernels, and how they are launched.
struct StreamKKernels {
  std::string multiply;
  std::string multiply_apart;  ///< of a joint configuration: for keys and values that do not lie alike
  std::string merge;
  bool dependent_launch = false;
  machine::Promotion promotion = machine::Promotion::b256;  ///< of copies of pages
};

/// The rows of a page that one copy brings: the largest power of two that divides a page, at most a chunk.
[[nodiscard]] int box_rows(const AttentionProblem& problem, const pipeline::attention::StreamKConfig& config);

/// Adds workspace and launches. `blocks` are those that a GPU holds at once.
void add_stream_k(PlannedCall& call, const AttentionProblem& problem, const pipeline::attention::StreamKConfig& config,
                  const StreamKKernels& kernels, int blocks);

}  // namespace thresher::strategies::attention
