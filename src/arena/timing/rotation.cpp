#include "arena/timing/rotation.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace thresher::arena {
namespace {

/// Where the cache is unknown, the rotation exceeds any present cache.
constexpr std::size_t assumed_cache_bytes = std::size_t{64} << 20;

double mebibytes(std::size_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

}  // namespace

std::string Rotation::why_not_cold() const {
  if (is_cold()) {
    return {};
  }
  if (last_level_cache_bytes == 0) {
    return fmt::format("the size of the last-level cache is unknown; rotated over {:.0f} MiB",
                       mebibytes(rotated_bytes()));
  }
  const std::string why = num_sets == max_sets
                              ? fmt::format("{} input sets are the most that are made", max_sets)
                              : fmt::format("{:.0f} MiB of memory were to be had", mebibytes(memory_limit_bytes));
  return fmt::format("rotated over {:.0f} MiB, not over 3 times the last-level cache of {:.0f} MiB: {}",
                     mebibytes(rotated_bytes()), mebibytes(last_level_cache_bytes), why);
}

Rotation plan_rotation(std::size_t set_bytes, std::size_t footprint_bytes, std::size_t last_level_cache_bytes,
                       std::size_t memory_limit_bytes) {
  Rotation rotation{1, std::max<std::size_t>(set_bytes, 1), last_level_cache_bytes, memory_limit_bytes};
  const std::size_t cache_bytes = last_level_cache_bytes > 0 ? last_level_cache_bytes : assumed_cache_bytes;
  const std::size_t wanted = 3 * cache_bytes / rotation.set_bytes + 2;
  const std::size_t affordable =
      std::max<std::size_t>(memory_limit_bytes / std::max<std::size_t>(footprint_bytes, 1), 1);
  rotation.num_sets = std::min({wanted, affordable, max_sets});
  return rotation;
}

}  // namespace thresher::arena
