#pragma once
/// The tensors of an attention as the arena keeps them: matrices of rows of head_dim elements.
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "arena/attention/task.hpp"
#include "arena/data/distribution.hpp"
#include "arena/data/host_tensor.hpp"

namespace thresher::arena {

/// "q", "k" and "v", the same for the same seed on every machine.
[[nodiscard]] std::vector<HostTensor> attention_inputs(const AttentionTask& task, Distribution distribution,
                                                       std::uint64_t seed);

/// "o", and "lse" where it is wanted.
[[nodiscard]] std::vector<HostTensor> attention_outputs(const AttentionTask& task);

/// The tensors of one call from those that `find` knows by name, with the strides of the task's memory order. The
/// offsets of sequences are left to the caller.
[[nodiscard]] AttentionTensors attention_tensors(const AttentionTask& task,
                                                 const std::function<Tensor(std::string_view)>& find);

/// Where sequences of these lengths begin, and where the last one ends; empty for no lengths.
[[nodiscard]] std::vector<std::int32_t> offsets_of(const std::vector<std::int64_t>& lengths);

}  // namespace thresher::arena
