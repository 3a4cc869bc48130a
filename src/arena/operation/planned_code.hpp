#pragma once
/// The machine code of a planned call, whatever its operation.
#include <string>

#include "arena/audit/machine_code.hpp"
#include "strategies/planned_call.hpp"

namespace thresher::arena {

/// Of every kernel that `call` launches, compiled for `arch`, with what the strategy expects of it: the product's
/// first, those that prepare it behind. No GPU is needed. Without NVRTC only what is built in can be had: the rest is
/// not judged. Nothing is where a library's products do the work.
[[nodiscard]] MachineCode machine_code_of(const strategies::PlannedCall& call, const std::string& arch);

}  // namespace thresher::arena
