#include "core/user_folder.hpp"

#include <cstdlib>

namespace thresher {

std::filesystem::path state_folder() {
  if (const char* const state = std::getenv("XDG_STATE_HOME"); state != nullptr && *state != '\0') {
    return std::filesystem::path(state) / "thresher";
  }
  const char* const home = std::getenv("HOME");
  return home != nullptr && *home != '\0' ? std::filesystem::path(home) / ".local/state/thresher"
                                          : std::filesystem::path();
}

}  // namespace thresher
