#pragma once
/// How a strategy refuses to plan what it cannot run.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <string_view>
#include <vector>

#include "thresher/error.hpp"
#include "thresher/knobs.hpp"

namespace thresher::strategies {

/// Throws Error(unsupported) with all of `obstacles`; does nothing when there is none.
inline void refuse_obstacles(std::string_view strategy, const Knobs& knobs, const std::vector<std::string>& obstacles) {
  if (!obstacles.empty()) {
    throw Error(ErrorCode::unsupported,
                fmt::format("strategy {}{}{} cannot run: {}", strategy, knobs.empty() ? "" : " with ", knobs.text(),
                            fmt::join(obstacles, "; ")));
  }
}

}  // namespace thresher::strategies
