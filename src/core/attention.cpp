#include "thresher/attention.hpp"

#include <cmath>

namespace thresher {

float effective_scale(const AttentionProblem& problem) noexcept {
  return problem.scale.value_or(1.0F / std::sqrt(static_cast<float>(problem.head_dim)));
}

std::int64_t effective_value_dim(const AttentionProblem& problem) noexcept {
  return problem.value_dim == 0 ? problem.head_dim : problem.value_dim;
}

Format effective_kv_format(const AttentionProblem& problem) noexcept {
  return problem.kv_format.value_or(problem.format);
}

}  // namespace thresher
