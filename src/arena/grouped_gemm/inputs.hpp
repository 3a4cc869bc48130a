#pragma once
/// The tensors of grouped products in the arena. Inputs, in this order: a, b1 and what there is of b2, up_global_scales
/// (of gate and up in one NVFP4 tensor), bias1, bias2, then offsets or counts, row_ids and row_weights; the output is
/// c. Rows of A that nobody owns are NaN. A GEMM has no offsets; its b1 and bias1 are stacks of one.
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "arena/data/distribution.hpp"
#include "arena/data/host_tensor.hpp"
#include "arena/grouped_gemm/task.hpp"

namespace thresher::arena {

[[nodiscard]] std::vector<HostTensor> grouped_inputs(const GroupedTask& task, Distribution distribution,
                                                     std::uint64_t seed);
/// Those that are no weights.
[[nodiscard]] std::vector<HostTensor> grouped_activations(const GroupedTask& task, Distribution distribution,
                                                          std::uint64_t seed);
/// The same with `counts` in this order.
[[nodiscard]] std::vector<HostTensor> grouped_activations(const GroupedTask& task,
                                                          const std::vector<std::int64_t>& counts,
                                                          Distribution distribution, std::uint64_t seed);
[[nodiscard]] std::vector<HostTensor> grouped_outputs_of(const GroupedTask& task);

/// In the words of the public API. `find` gives the tensor of a name, one of rank 0 where there is none.
using FindTensor = std::function<Tensor(std::string_view name)>;
[[nodiscard]] GroupedWeights grouped_weights(const GroupedTask& task, const FindTensor& find);
[[nodiscard]] GroupedTensors grouped_tensors(const GroupedTask& task, const FindTensor& find);

/// Other counts with as many rows and within the slots, of a kind that `change` says: equal, all for one, one row each
/// and the rest for one, every second expert without any, or random.
[[nodiscard]] std::vector<std::int64_t> other_counts(const GroupedTask& task, std::uint64_t change, std::uint64_t seed);

}  // namespace thresher::arena
