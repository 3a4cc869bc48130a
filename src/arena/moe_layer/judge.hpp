#pragma once
/// Judges outputs of layers against the float64 definition end to end, on the operands as they are quantized; and looks
/// at outputs of many calls.
#include <cstdint>
#include <memory>
#include <vector>

#include "arena/moe_layer/task.hpp"
#include "arena/operation/operation.hpp"

namespace thresher::arena {

/// All outputs where the definition is cheap enough; else whole tokens, at least one of every 64 rows of every expert,
/// in some columns of every 64.
[[nodiscard]] std::unique_ptr<Judge> make_layer_judge(const LayerTask& task, const std::vector<HostTensor>& inputs,
                                                      const Maker& maker, std::uint64_t seed);
[[nodiscard]] std::unique_ptr<Inspector> make_layer_inspector(const LayerTask& task, Distribution distribution,
                                                              const std::vector<HostTensor>& inputs, const Maker& maker,
                                                              std::uint64_t seed);

}  // namespace thresher::arena
