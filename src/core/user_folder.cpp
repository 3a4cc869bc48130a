#include "core/user_folder.hpp"

#include <cstdlib>

namespace thresher {

std::filesystem::path state_folder() {
  const char* state = std::getenv("XDG_STATE_HOME");
  const char* home = std::getenv("HOME");
  const std::filesystem::path folder = state != nullptr && *state != '\0' ? std::filesystem::path(state)
                                       : home != nullptr                  ? std::filesystem::path(home) / ".local/state"
                                                                          : std::filesystem::path(".");
  return folder / "thresher";
}

}  // namespace thresher
