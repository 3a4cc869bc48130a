#pragma once
/// The quantization of tokens as a planned call. There is one way to do it, so there is no registry.
#include <array>
#include <cstddef>
#include <vector>

#include "strategies/planned_call.hpp"
#include "thresher/quantize.hpp"

namespace thresher::strategies::quantize {

/// The tensors of a call, in the order in which CallTensors has them.
enum TensorIndex : std::size_t { x_index, out_index, tensor_count };
inline constexpr std::array<const char*, tensor_count> tensor_names{"x", "out"};

/// Needs no workspace. Takes every number of rows up to the problem's. `threads` of the CPU, 0 for all.
[[nodiscard]] PlannedCall quantize_call(const QuantizeProblem& problem, DeviceKind device, int threads = 0);

/// The one step of such a call, with its tensors at these places of a larger one. The number of rows and columns does
/// not matter.
[[nodiscard]] Step quantize_step(const QuantizeProblem& problem, DeviceKind device, std::size_t x, std::size_t out,
                                 int threads);

/// The calls compiled ahead.
[[nodiscard]] std::vector<PlannedCall> built_in();

}  // namespace thresher::strategies::quantize
