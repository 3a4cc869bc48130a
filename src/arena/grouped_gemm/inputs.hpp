#pragma once
/// The tensors of grouped products in the arena. Inputs, in this order: a, b1 and what there is of b2, up_global_scales
/// (of gate and up in one NVFP4 tensor), bias1, bias2, then offsets or counts, row_ids, row_weights and c_scale, what
/// an output in fp8_tensor is given (in slots each its own); the outputs are c, which has the values alone, and
/// c_scales, those that are found of one in fp8_row or fp8_block, row-major. Rows of A that nobody owns are NaN. A GEMM
/// has no offsets; its b1 and bias1 are stacks of one.
#include <array>
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
/// Those that are weights.
[[nodiscard]] std::vector<HostTensor> grouped_weight_inputs(const GroupedTask& task, Distribution distribution,
                                                            std::uint64_t seed);
/// Those that are not.
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
/// C of the problem from the tensors c, c_scales and c_scale, whatever of them there is.
[[nodiscard]] Tensor grouped_output(const GroupedProblem& problem, const FindTensor& find);
/// The least that an output in fp8_tensor is given.
inline constexpr float min_given_scale = 0.03125F;
/// What a problem's outputs may be made in.
inline constexpr std::array grouped_output_formats{Format::fp32,       Format::fp16,    Format::bf16,
                                                   Format::fp8_tensor, Format::fp8_row, Format::fp8_block};

/// Other counts with as many rows and within the slots, of a kind that `change` says: equal, all for one, one row each
/// and the rest for one, every second expert without any, or random.
[[nodiscard]] std::vector<std::int64_t> other_counts(const GroupedTask& task, std::uint64_t change, std::uint64_t seed);

}  // namespace thresher::arena
