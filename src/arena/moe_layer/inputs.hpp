#pragma once
/// The tensors of layers in the arena. Inputs, in this order: x; those of GroupedWeights of gate and up, as
/// "gate_up.b1" and so on, and of down, as "down.b1"; topk_ids and topk_weights, which a gated MLP has not. Its weights
/// are stacks of one. The output is out.
#include <cstdint>
#include <string_view>
#include <vector>

#include "arena/data/distribution.hpp"
#include "arena/data/host_tensor.hpp"
#include "arena/gemm/inputs.hpp"
#include "arena/moe_layer/choices.hpp"
#include "arena/moe_layer/task.hpp"

namespace thresher::arena {

[[nodiscard]] std::vector<HostTensor> layer_inputs(const LayerTask& task, Distribution distribution,
                                                   std::uint64_t seed);
/// Those that are no weights.
[[nodiscard]] std::vector<HostTensor> layer_activations(const LayerTask& task, Distribution distribution,
                                                        std::uint64_t seed);
/// The same with these choices.
[[nodiscard]] std::vector<HostTensor> layer_activations(const LayerTask& task, const ChosenExperts& chosen,
                                                        Distribution distribution, std::uint64_t seed);
[[nodiscard]] std::vector<HostTensor> layer_outputs_of(const LayerTask& task);

/// In the words of the public API. `find` gives the tensor of a name, one of rank 0 where there is none.
[[nodiscard]] GroupedWeights gate_up_weights(const LayerTask& task, const FindTensor& find);
[[nodiscard]] GroupedWeights down_weights(const LayerTask& task, const FindTensor& find);
[[nodiscard]] GatedMlpWeights gated_mlp_weights(const FindTensor& find);
[[nodiscard]] MoeTensors layer_tensors(const FindTensor& find);

}  // namespace thresher::arena
