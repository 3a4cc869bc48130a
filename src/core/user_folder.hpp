#pragma once
/// Where files of the user are kept from run to run.
#include <filesystem>

namespace thresher {

/// thresher in $XDG_STATE_HOME, else in ~/.local/state; empty where neither XDG_STATE_HOME nor HOME is set. It need not
/// exist.
[[nodiscard]] std::filesystem::path state_folder();

}  // namespace thresher
