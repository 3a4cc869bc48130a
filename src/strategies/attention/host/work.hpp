#pragma once
/// What attention's strategies on the matrix unit say of their work.
#include "pipeline/attention/config.hpp"
#include "strategies/work_model.hpp"
#include "thresher/attention.hpp"

namespace thresher::strategies::attention {

[[nodiscard]] WorkModel pipelined_work(const AttentionProblem& problem, const pipeline::attention::StreamConfig& config,
                                       bool dependent_launch);
[[nodiscard]] WorkModel split_work(const AttentionProblem& problem, const pipeline::attention::SplitConfig& config,
                                   bool dependent_launch);

}  // namespace thresher::strategies::attention
