#pragma once
/// The checks that every plan of a product relies on. Each throws Error(invalid_argument) with one sentence. The
/// contents of offsets, counts and ids are not checked: no host reads them.
#include <initializer_list>
#include <string_view>
#include <utility>

#include "ops/packed_content.hpp"
#include "strategies/gemm/problem.hpp"

namespace thresher::ops {

using strategies::gemm::ProductProblem;

/// Extents, formats, layout and activation of the problem itself.
void validate(const ProductProblem& problem);

/// The weights by themselves, before any problem is known. B1 and B2 of the dual GEMM are validated against each other.
void validate_pair(const Tensor& b1_gate, const Tensor& b2_up, DeviceId device);
void validate_weights(const GemmWeights& weights, DeviceId device);
void validate_weights(const GroupedWeights& weights, DeviceId device);
/// The same against the problem. Those of grouped products, which validate_weights accepts, are compared by their
/// numbers.
void validate_weights(const ProductProblem& problem, const Tensor& b1_gate, const Tensor& b2_up, DeviceId device);
void validate_weights(const ProductProblem& problem, const WeightsShape& weights);
void check_same_device(const Device& packed_for, const Device& device);
void check_bias(const ProductProblem& problem, bool has_bias);

/// The place of a run: its workspace, and what its plan demands of tensors.
struct RunPlace {
  const void* workspace = nullptr;
  std::size_t workspace_bytes = 0;
  std::size_t alignment = 1;  ///< of A and C, in bytes
  DeviceId device{};
};
/// Tensors that C must not overlap, by their names. Tensors of rank 0 are skipped.
using NamedTensors = std::initializer_list<std::pair<const char*, const Tensor*>>;
void check_apart(const Tensor& c, NamedTensors tensors, const RunPlace& place, std::string_view output = "c");

/// A and the workspace of a run of a dense product.
void validate_tokens(const ProductProblem& problem, const Tensor& a, const RunPlace& place);
/// All tensors of a run of a dense product. `weights` are those that calls read where the caller left them.
void validate_run(const ProductProblem& problem, const Tensor& a, const Tensor& c, const GroupedWeights& weights,
                  const RunPlace& place);
/// All tensors of a run of a grouped product.
void validate_run(const ProductProblem& problem, const GroupedTensors& tensors, const GroupedWeights& weights,
                  const RunPlace& place);

}  // namespace thresher::ops
