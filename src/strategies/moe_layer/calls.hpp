#pragma once
/// The work of an MoE layer around its products, as planned calls: launches on a GPU, functions on the CPU.
#include <optional>
#include <string>
#include <vector>

#include "strategies/gemm/problem.hpp"
#include "strategies/planned_call.hpp"
#include "thresher/moe_layer.hpp"

namespace thresher::strategies::moe_layer {

/// Throws Error(unsupported) for more experts than a device can permute by.
void require_sortable(std::int64_t experts, DeviceKind device);
/// Tokens of 16 bits that a call quantizes to the product's a before it uses them.
struct QuantizedTokens {
  Format from = Format::bf16;
  int threads = 0;  ///< of the CPU, 0 for all
};
/// `product` of gathered rows, with offsets and row ids made from a layer's top-k assignments (RoutedTensor). On a GPU
/// the launch that gathers the rows permutes them too; where the product gathers them itself, permuting is a separate
/// kernel. The number of experts has passed require_sortable. `tokens` are quantized by the launch that gathers them
/// where their scales are of blocks, and else by a launch ahead.
[[nodiscard]] PlannedCall with_routing(PlannedCall product, const ProductProblem& problem, DeviceKind device,
                                       const std::optional<QuantizedTokens>& tokens = {});
/// Whether the launch behind this call may read before it waits what was written before this call.
[[nodiscard]] bool settles(const PlannedCall& call);
/// `product` behind a call that settles: its kernels read the offsets before they wait.
[[nodiscard]] PlannedCall with_settled_groups(PlannedCall product);
/// Combines the rows of each token's assignments (CombineTensor), behind a call that settles or does not. `threads` of
/// the CPU, 0 for all.
[[nodiscard]] PlannedCall combine_call(const MoeProblem& problem, DeviceKind device, bool is_settled = false,
                                       int threads = 0);

std::string count_kernel_name();
std::string place_kernel_name();
/// The one that quantizes tokens of this format.
std::string quantize_kernel_name(Format from);
/// The kernel for rows and an output in these formats.
std::string combine_kernel_name(Format rows, Format out);

/// The calls compiled ahead: permuting, also with tokens that are quantized, and combining rows of 16 bits to outputs
/// of the same format.
[[nodiscard]] std::vector<PlannedCall> built_in();

}  // namespace thresher::strategies::moe_layer
