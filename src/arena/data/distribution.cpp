#include "arena/data/distribution.hpp"

namespace thresher::arena {

std::string_view name(Distribution distribution) noexcept {
  switch (distribution) {
    case Distribution::contest: return "contest";
    case Distribution::full_range: return "full_range";
    case Distribution::normal: return "normal";
    case Distribution::integers: return "integers";
    case Distribution::specials: return "specials";
  }
  return "unknown";
}

std::optional<Distribution> distribution_from_name(std::string_view wanted) noexcept {
  for (const Distribution distribution : all_distributions) {
    if (name(distribution) == wanted) {
      return distribution;
    }
  }
  return std::nullopt;
}

}  // namespace thresher::arena
