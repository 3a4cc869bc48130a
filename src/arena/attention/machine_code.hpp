#pragma once
/// The machine code of attention's strategies, and what the audit expects of it.
#include "arena/audit/machine_code.hpp"
#include "thresher/attention.hpp"

namespace thresher::arena {

/// The machine code of the kernel that a plan would launch on a GPU of `arch` with that many multiprocessors; no GPU is
/// needed. Throws Error(unsupported) for what the strategy cannot take, and where the code is not built in and NVRTC is
/// missing.
[[nodiscard]] MachineCode attention_machine_code(const AttentionProblem& problem, const AttentionOptions& options,
                                                 int multiprocessors, const std::string& arch);

}  // namespace thresher::arena
