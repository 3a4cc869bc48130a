#pragma once
/// What a layer of experts does around its products, as planned calls: on a GPU launches, on the CPU functions.
#include <string>
#include <vector>

#include "strategies/gemm/problem.hpp"
#include "strategies/planned_call.hpp"
#include "thresher/moe_layer.hpp"

namespace thresher::strategies::moe_layer {

/// Throws Error(unsupported) for more experts than a device sorts choices of.
void require_sortable(std::int64_t experts, DeviceKind device);
/// `product`, of gathered rows, that makes its offsets and row ids itself from a layer's choices (RoutedTensor). On a
/// GPU the launch that brings the rows together sorts, too; where rows come together otherwise, sorting is a launch
/// ahead. The experts are sortable.
[[nodiscard]] PlannedCall with_routing(PlannedCall product, const ProductProblem& problem, DeviceKind device);
/// Adds up the rows of each token's choices (CombineTensor). `threads` of the CPU, 0 for all.
[[nodiscard]] PlannedCall combine_call(const MoeProblem& problem, DeviceKind device, int threads = 0);

std::string count_kernel_name();
std::string place_kernel_name();
/// Of rows and of an output in these formats.
std::string combine_kernel_name(Format rows, Format out);

/// What is compiled ahead: sorting, and adding up rows of 16 bits to outputs of the same.
[[nodiscard]] std::vector<PlannedCall> built_in();

}  // namespace thresher::strategies::moe_layer
