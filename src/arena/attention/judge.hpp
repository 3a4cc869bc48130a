#pragma once
/// Judges outputs of attention against the float64 definition, and names the commonest mistakes.
#include <cstdint>
#include <memory>
#include <vector>

#include "arena/attention/task.hpp"
#include "arena/operation/operation.hpp"

namespace thresher::arena {

/// `inputs` are all of a call; the judge keeps them for naming mistakes.
[[nodiscard]] std::unique_ptr<Judge> make_attention_judge(const AttentionTask& task, std::vector<HostTensor> inputs,
                                                          std::uint64_t seed);

}  // namespace thresher::arena
