#pragma once
/// A layer of experts and a gated MLP from end to end in float64, and how far one in low precision may lie from it.
#include <cstdint>
#include <vector>

#include "reference/region.hpp"
#include "reference/tolerance.hpp"
#include "thresher/gated_mlp.hpp"
#include "thresher/moe_layer.hpp"

namespace thresher::reference {

/// One valid call in the CPU's memory.
struct MoeCall {
  MoeProblem problem;
  GroupedWeights gate_up;
  GroupedWeights down;
  MoeTensors tensors;
};

/// Choices by expert, those of one expert in the order in which they come.
struct SortedChoices {
  std::vector<std::int32_t> offsets;  ///< [experts + 1]
  std::vector<std::int32_t> row_ids;  ///< [choices]: of each row its choice, −1 behind the last row
  std::vector<std::int32_t> inverse;  ///< [choices]: of each choice its row, −1 for one that is skipped
};
[[nodiscard]] SortedChoices sorted_choices(const MoeProblem& problem, const Tensor& topk_ids);

/// Some of out: tokens are the rows of a region, row-major.
struct MoeOutputs {
  /// What MoeProblem defines on the operands as they are quantised, unrounded from x to out, but that an intermediate
  /// or a row beyond the range of its format is an infinity. A requantised intermediate is what it is read as.
  std::vector<double> value;
  /// How far an output may lie from it: what errors of the intermediate carry into a row (each as large as the
  /// tolerance of the grouped product allows, and independent of the others, as roundings are: the root of the sum of
  /// their squares; of a requantised one how far off codes and scales may be that are right for it, all added up), the
  /// tolerance of the row's own product, both times the weights, twice the error of adding up in
  /// float32, and 1 ulp of out.
  std::vector<double> bound;
  /// What the value would be if every weight were 1: what a layer makes that leaves the router's weights out.
  std::vector<double> unweighted;
};
/// Of those of out alone that the region names; an intermediate is computed whole. `device` is that whose sums the
/// tolerance is for. On `threads` threads (0: one for each processor).
[[nodiscard]] MoeOutputs moe_layer(const MoeCall& call, const Region& region, DeviceKind device, int threads = 0);

/// Judges those elements of `out`, as one tile.
Verdict judge_moe_outputs(const Tensor& out, const Region& region, const MoeOutputs& wanted);

/// A gated MLP as a layer of one expert, which every token chooses with weight 1.
[[nodiscard]] MoeProblem layer_of_one_expert(const GatedMlpProblem& problem);

/// Judges `call.tensors.out`, every element.
Verdict judge_moe_layer(const MoeCall& call, DeviceKind device);
/// The same of a gated MLP, a layer of one expert which every token has chosen.
Verdict judge_gated_mlp(const GatedMlpProblem& problem, const GatedMlpWeights& weights, const Tensor& x,
                        const Tensor& out, DeviceKind device);

}  // namespace thresher::reference
