#pragma once
/// Quick looks at outputs of attention.
#include <memory>

#include "arena/attention/task.hpp"
#include "arena/operation/inspector.hpp"

namespace thresher::arena {

/// A look is at some queries of one head, by the rule of the judge (judge.hpp); what a plain computation errs on them
/// and on some rows of `inputs` is what they may err.
[[nodiscard]] std::unique_ptr<Inspector> make_attention_inspector(const AttentionTask& task,
                                                                  const std::vector<HostTensor>& inputs,
                                                                  std::uint64_t seed);

}  // namespace thresher::arena
