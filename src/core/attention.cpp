#include "thresher/attention.hpp"

#include <cmath>

namespace thresher {

float effective_scale(const AttentionProblem& problem) noexcept {
  return problem.scale.value_or(1.0F / std::sqrt(static_cast<float>(problem.head_dim)));
}

}  // namespace thresher
