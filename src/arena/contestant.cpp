#include "arena/contestant.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace thresher::arena {

std::string label(const ContestantSpec& spec) {
  std::vector<std::string> knobs;
  for (const auto& [knob, value] : spec.knobs) {
    knobs.push_back(knob + "=" + value);
  }
  return spec.operation + "/" + spec.strategy + (knobs.empty() ? "" : fmt::format("[{}]", fmt::join(knobs, ",")));
}

}  // namespace thresher::arena
