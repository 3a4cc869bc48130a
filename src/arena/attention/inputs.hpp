#pragma once
/// The tensors of an attention as the arena keeps them: matrices of rows of elements. Inputs, in this order: q, k, v,
/// then what there is of cu_seqlens_q, cu_seqlens_k, block_table, seqused_k, sinks, k_descale, v_descale and q_descale;
/// outputs are o and lse. Rows of a page that no sequence uses are NaN.
#include <cstdint>
#include <vector>

#include "arena/attention/task.hpp"
#include "arena/data/distribution.hpp"
#include "arena/data/host_tensor.hpp"
#include "arena/operation/find_tensor.hpp"

namespace thresher::arena {

/// The same for the same seed on every machine.
[[nodiscard]] std::vector<HostTensor> attention_inputs(const AttentionTask& task, Distribution distribution,
                                                       std::uint64_t seed);
/// The same with the lengths of `lengths`, in this order; with pages, of a task that has the same pool.
[[nodiscard]] std::vector<HostTensor> attention_inputs(const AttentionTask& task, const AttentionTask& lengths,
                                                       Distribution distribution, std::uint64_t seed);

/// "o", and "lse" where it is wanted.
[[nodiscard]] std::vector<HostTensor> attention_outputs(const AttentionTask& task);

/// The tensors of one call, with the strides of the task's memory order.
[[nodiscard]] AttentionTensors attention_tensors(const AttentionTask& task, const FindTensor& find);

/// Other lengths of as many queries, and of keys that fit the table and the pool, of a kind that `change` says: equal,
/// all for one sequence, every second one without any, one for each and the rest for one, or random.
[[nodiscard]] AttentionTask other_lengths(const AttentionTask& task, std::uint64_t change, std::uint64_t seed);

/// Where sequences of these lengths begin, and where the last one ends; empty for no lengths.
[[nodiscard]] std::vector<std::int32_t> offsets_of(const std::vector<std::int64_t>& lengths);

}  // namespace thresher::arena
