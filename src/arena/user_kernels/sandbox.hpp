#pragma once
/// A match held in a process of its own, so that a kernel from outside takes nothing with it when it crashes or hangs.
#include <string>
#include <vector>

#include "arena/gates/match.hpp"

namespace thresher::arena::user_kernels {

/// As hold_match, by `worker` (a command that ends up in work_in_sandbox). `match` has a pitch with a kernel. Without a
/// sign of life for the kernel's time limit the worker is killed; a worker that dies fails the gate that it was at.
[[nodiscard]] Entry hold_match_in_sandbox(Match& match, const std::vector<std::string>& worker, const Context& context);

}  // namespace thresher::arena::user_kernels
