#pragma once
/// User kernels as contestants, and their opponents. `server` is always the command that calls serve_calls
/// (call_server.hpp): the process in which a kernel runs.
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "arena/contestants/contestant.hpp"
#include "arena/contestants/registry.hpp"
#include "arena/pitches/kernel.hpp"
#include "arena/suites/suite.hpp"
#include "thresher/device.hpp"

namespace thresher::arena::user_kernels {

/// Makes a contestant under a name that no strategy of the device has. It compiles nothing until a gate asks. `device`
/// is the tournament's. A GPU kernel on another device is compiled and audited, and reports why it does not run. Throws
/// Error(invalid_argument).
[[nodiscard]] std::unique_ptr<Contestant> bring(const ContestantSpec& spec, const Kernel& kernel, const Device& device,
                                                const Registry& registry, const std::vector<std::string>& server);

/// The baseline for such a kernel. Where calls go through a process, both go through one, so that both are timed alike.
/// On a GPU, whose own clock times them, the baseline stays in this process.
[[nodiscard]] std::unique_ptr<Contestant> baseline_of(const Kernel& kernel, const ContestantSpec& spec,
                                                      const Device& device, const Registry& registry,
                                                      const std::vector<std::string>& server);

/// Throws Error when this machine lacks a tool that such a kernel needs: a compiler, or a Python with the packages for
/// its arrays.
void check_tools(const Kernel& kernel, const Device& device, std::span<const Suite> suites);

/// Throws Error(io) when that command cannot start a process.
void check_server(const std::vector<std::string>& server);

}  // namespace thresher::arena::user_kernels
