#include "arena/timing/mode.hpp"

#include <string>

#include "thresher/error.hpp"

namespace thresher::arena {

std::string_view name(TimingMode mode) noexcept {
  switch (mode) {
    case TimingMode::cold_burst: return "cold burst";
    case TimingMode::cold_sustained: return "cold sustained";
    case TimingMode::warm_burst: return "warm burst";
    case TimingMode::warm_sustained: return "warm sustained";
  }
  return "unknown";
}

TimingMode mode_from_name(std::string_view wanted) {
  for (const TimingMode mode : all_modes) {
    if (name(mode) == wanted) {
      return mode;
    }
  }
  throw Error(ErrorCode::invalid_argument, "there is no timing mode \"" + std::string(wanted) + "\"");
}

}  // namespace thresher::arena
