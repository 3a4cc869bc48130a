#pragma once
/// Kernels that users bring, as contestants, and who meets them. `server` is everywhere the command that ends up in
/// serve_calls (call_server.hpp): the process in which a kernel runs.
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

/// A contestant of a tournament, under a name that no strategy of the device has. Costs nothing yet: compiled when a
/// gate asks. `device` is where the tournament is held; a GPU's kernel entered elsewhere is compiled and audited, and
/// says why it is not run. Throws Error(invalid_argument).
[[nodiscard]] std::unique_ptr<Contestant> bring(const ContestantSpec& spec, const Kernel& kernel, const Device& device,
                                                const Registry& registry, const std::vector<std::string>& server);

/// The baseline of such a kernel: where calls go through a process, both go through one, so that both are timed alike.
/// On a GPU, whose own clock times them, the baseline stays in this process.
[[nodiscard]] std::unique_ptr<Contestant> baseline_of(const Kernel& kernel, const ContestantSpec& spec,
                                                      const Device& device, const Registry& registry,
                                                      const std::vector<std::string>& server);

/// Throws Error when this machine has not what such a kernel is built or run with: a compiler, or a Python with the
/// packages that make its arrays.
void check_tools(const Kernel& kernel, const Device& device, std::span<const Suite> suites);

/// Throws Error(io) when no process can be started with that command.
void check_server(const std::vector<std::string>& server);

}  // namespace thresher::arena::user_kernels
