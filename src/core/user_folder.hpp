#pragma once
/// Where files of the user are kept from run to run.
#include <filesystem>

namespace thresher {

/// thresher in $XDG_STATE_HOME, else in ~/.local/state, else in the working folder. It need not exist.
[[nodiscard]] std::filesystem::path state_folder();

}  // namespace thresher
