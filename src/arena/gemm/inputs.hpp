#pragma once
/// The tensors of products in the arena.
///
/// Inputs, in this order: a, b1 and what there is of b2, up_global_scales (of gate and up in one NVFP4 tensor), bias1,
/// bias2, then offsets or counts, row_ids, row_weights and c_scale, what an output in fp8_tensor is given (in slots
/// each its own). Outputs: c, which has the values alone, and c_scales, those that are found of one in fp8_row or
/// fp8_block, row-major. Unowned rows of A are NaN. Dense products have no offsets. The weights of a dual GEMM are
/// matrices, those of a GEMM stacks of one.
#include <array>
#include <cstdint>
#include <vector>

#include "arena/data/distribution.hpp"
#include "arena/data/host_tensor.hpp"
#include "arena/gemm/task.hpp"
#include "arena/operation/find_tensor.hpp"

namespace thresher::arena {

[[nodiscard]] std::vector<HostTensor> product_inputs(const ProductTask& task, Distribution distribution,
                                                     std::uint64_t seed);
/// Those that are weights.
[[nodiscard]] std::vector<HostTensor> weight_inputs(const ProductTask& task, Distribution distribution,
                                                    std::uint64_t seed);
/// Those that are not.
[[nodiscard]] std::vector<HostTensor> product_activations(const ProductTask& task, Distribution distribution,
                                                          std::uint64_t seed);
/// The same with `counts` in this order.
[[nodiscard]] std::vector<HostTensor> product_activations(const ProductTask& task,
                                                          const std::vector<std::int64_t>& counts,
                                                          Distribution distribution, std::uint64_t seed);
[[nodiscard]] std::vector<HostTensor> product_outputs(const ProductTask& task);

/// In the words of the public API; every weight is a stack.
[[nodiscard]] GroupedWeights grouped_weights(const ProductTask& task, const FindTensor& find);
[[nodiscard]] GroupedTensors grouped_tensors(const ProductTask& task, const FindTensor& find);
/// The matrix of a stack of one, or its row of biases; of rank 0 where there is none.
[[nodiscard]] Tensor only_matrix(const Tensor& stack);
/// C of the problem from the tensors c, c_scales and c_scale, whatever of them there is.
[[nodiscard]] Tensor grouped_output(const GroupedProblem& problem, const FindTensor& find);
/// The least that an output in fp8_tensor is given.
inline constexpr float min_given_scale = 0.03125F;
/// The formats that a problem's outputs may have.
inline constexpr std::array grouped_output_formats{Format::fp32,       Format::fp16,    Format::bf16,
                                                   Format::fp8_tensor, Format::fp8_row, Format::fp8_block};

/// Other counts with as many rows and within the slots, of a kind that `change` says: equal, all for one, one row each
/// and the rest for one, every second expert without any, or random.
[[nodiscard]] std::vector<std::int64_t> other_counts(const ProductTask& task, std::uint64_t change, std::uint64_t seed);

}  // namespace thresher::arena
