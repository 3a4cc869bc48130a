#pragma once
/// The checks that every backend of the grouped products relies on. Each throws Error(invalid_argument) with one
/// sentence. What offsets, counts and ids hold is not looked at: no host reads them.
#include "thresher/grouped_gemm.hpp"

namespace thresher::ops {

/// Extents, formats, layout and activation of the problem itself.
void validate(const GroupedProblem& problem);
/// The weights by themselves, before any problem is known.
void validate_weights(const GroupedWeights& weights, DeviceId device);
/// Weights that validate_weights accepts, by their numbers, against the problem.
struct WeightsShape {
  std::int64_t experts = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  Format format = Format::fp16;
  int matrices = 1;
  bool has_bias = false;
};
[[nodiscard]] WeightsShape shape_of(const GroupedWeights& weights);
void validate_weights(const GroupedProblem& problem, const WeightsShape& weights);
/// The tensors and the workspace of one run. `alignment` is what the backend needs of A and C, in bytes; `weights` are
/// those that calls read where the caller left them, from which C lies apart.
void validate_run(const GroupedProblem& problem, const GroupedTensors& tensors, const GroupedWeights& weights,
                  const void* workspace, std::size_t workspace_bytes, std::size_t alignment, DeviceId device);

}  // namespace thresher::ops
