#pragma once
/// The launch that appends on a GPU, as a planned call. There is one way to do it, so there is no registry.
#include <optional>
#include <string>
#include <vector>

#include "core/device_spec.hpp"
#include "strategies/append/params.hpp"
#include "strategies/planned_call.hpp"
#include "thresher/append.hpp"

namespace thresher::strategies::append {

/// Why a GPU cannot do it, in one sentence.
[[nodiscard]] std::optional<std::string> obstacle(const AppendProblem& problem, const DeviceSpec& device);

/// Needs no workspace. Takes every number of tokens up to the problem's.
[[nodiscard]] PlannedCall append_call(const AppendProblem& problem, const DeviceSpec& device);

[[nodiscard]] std::string append_kernel_name(Format format, Format cache, Turn turn);

/// The calls compiled ahead: halves and interleaved pairs, pages of 16 bits and of FP8.
[[nodiscard]] std::vector<PlannedCall> built_in(const DeviceSpec& device);

}  // namespace thresher::strategies::append
