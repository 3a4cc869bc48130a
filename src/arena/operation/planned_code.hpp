#pragma once
/// The machine code of a planned call, for any operation.
#include <string>

#include "arena/audit/machine_code.hpp"
#include "strategies/planned_call.hpp"

namespace thresher::arena {

/// Compiles every kernel that `call` launches for `arch`, with the strategy's expectations: the product first, then the
/// kernels that prepare it. Needs no GPU. Without NVRTC only built-in code is available, and the rest is not judged.
/// Empty where a library's products do the work.
[[nodiscard]] MachineCode machine_code_of(const strategies::PlannedCall& call, const std::string& arch);

}  // namespace thresher::arena
