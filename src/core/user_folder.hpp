#pragma once
/// The folder for the user's files that stay between runs.
#include <filesystem>

namespace thresher {

/// thresher in $XDG_STATE_HOME, otherwise in ~/.local/state; empty if neither XDG_STATE_HOME nor HOME is set. It need
/// not exist.
[[nodiscard]] std::filesystem::path state_folder();

}  // namespace thresher
