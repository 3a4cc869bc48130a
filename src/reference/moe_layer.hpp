#pragma once
/// A layer of MoE experts and a gated MLP from end to end in float64, with the allowed error of a computation in low
/// precision.
#include <cstdint>
#include <vector>

#include "reference/region.hpp"
#include "reference/tolerance.hpp"
#include "thresher/gated_mlp.hpp"
#include "thresher/moe_layer.hpp"

namespace thresher::reference {

/// One valid call in CPU memory.
struct MoeCall {
  MoeProblem problem;
  GroupedWeights gate_up;
  GroupedWeights down;
  MoeTensors tensors;
};

/// Top-k assignments permuted by expert, stably.
struct SortedChoices {
  std::vector<std::int32_t> offsets;  ///< [experts + 1]
  std::vector<std::int32_t> row_ids;  ///< [assignments]: each row's assignment, −1 behind the last row
  std::vector<std::int32_t> inverse;  ///< [assignments]: each assignment's row, −1 if it is skipped
};
[[nodiscard]] SortedChoices sorted_choices(const MoeProblem& problem, const Tensor& topk_ids);

/// A part of out: the region's rows are tokens, row-major.
struct MoeOutputs {
  /// MoeProblem's definition on the quantized operands, unrounded from x to out. An intermediate or a row beyond the
  /// range of its format becomes an infinity. A quantized intermediate has the value that it reads back as.
  std::vector<double> value;
  /// The allowed distance of an output from `value`. It is a sum of these parts:
  /// - the errors of the intermediate, carried into a row. Each is as large as the tolerance of the grouped product
  ///   allows, and roundings are independent: the root of the sum of their squares. For a quantized intermediate, the
  ///   allowed errors of its values and scales are added up instead;
  /// - the tolerance of the row's own product; both parts are multiplied by the top-k weights;
  /// - twice the error of combining in float32, and 1 ulp of out.
  std::vector<double> bound;
  /// The value if every weight were 1, as from a layer that ignores the router's weights.
  std::vector<double> unweighted;
};
/// For the region's outputs only; an intermediate is computed whole. The tolerance is for the accumulation of `device`.
/// Runs on `threads` threads (0: one per processor).
[[nodiscard]] MoeOutputs moe_layer(const MoeCall& call, const Region& region, DeviceKind device, int threads = 0);

/// Checks those elements of `out`, as one tile.
Verdict judge_moe_outputs(const Tensor& out, const Region& region, const MoeOutputs& wanted);

/// A gated MLP as a layer of one expert, to which every token is assigned with weight 1.
[[nodiscard]] MoeProblem layer_of_one_expert(const GatedMlpProblem& problem);

/// Checks `call.tensors.out`, every element.
Verdict judge_moe_layer(const MoeCall& call, DeviceKind device);
/// The same for a gated MLP, as a layer of one expert.
Verdict judge_gated_mlp(const GatedMlpProblem& problem, const GatedMlpWeights& weights, const Tensor& x,
                        const Tensor& out, DeviceKind device);

}  // namespace thresher::reference
