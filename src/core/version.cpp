#include "thresher/version.hpp"

namespace thresher {

const char* version() noexcept { return THRESHER_VERSION; }

}  // namespace thresher
