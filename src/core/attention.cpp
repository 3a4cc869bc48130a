#include "thresher/attention.hpp"

#include <cmath>
#include <utility>

namespace thresher {

float effective_scale(const AttentionProblem& problem) noexcept {
  return problem.scale.value_or(1.0F / std::sqrt(static_cast<float>(problem.head_dim)));
}

std::int64_t effective_value_dim(const AttentionProblem& problem) noexcept {
  return problem.value_dim == 0 ? problem.head_dim : problem.value_dim;
}

Format effective_q_format(const AttentionProblem& problem) noexcept {
  return problem.q_format.value_or(problem.format);
}

Format effective_kv_format(const AttentionProblem& problem) noexcept {
  return problem.kv_format.value_or(problem.format);
}

std::string AttentionStatus::explain() const {
  std::string text;
  for (const auto& [flag, says] :
       {std::pair{offsets, "cu_seqlens_q decreases, is negative or exceeds the rows of q"},
        std::pair{lengths, "a length of seqused_k is negative or exceeds the keys there may be"},
        std::pair{pages, "block_table names a page that is not there"}}) {
    if (has(flag)) {
      text += (text.empty() ? "" : "; ") + std::string(says);
    }
  }
  return text.empty() ? "lengths and pages make sense" : text;
}

}  // namespace thresher
