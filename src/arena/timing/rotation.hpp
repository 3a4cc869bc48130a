#pragma once
/// The number of input sets that cold calls rotate over, and whether it makes them cold.
#include <cstddef>
#include <string>

namespace thresher::arena {

struct Rotation {
  std::size_t num_sets = 1;
  std::size_t set_bytes = 0;               ///< inputs and outputs of one set
  std::size_t last_level_cache_bytes = 0;  ///< 0 where the system does not tell
  std::size_t memory_limit_bytes = 0;      ///< of all sets together, with their guard zones

  [[nodiscard]] std::size_t rotated_bytes() const noexcept { return num_sets * set_bytes; }
  /// Cold: over 3 times the last-level cache passes before a set is used again.
  [[nodiscard]] bool is_cold() const noexcept {
    return last_level_cache_bytes > 0 && (num_sets - 1) * set_bytes > 3 * last_level_cache_bytes;
  }
  /// Why the cold times are not cold, in one sentence; empty when they are.
  [[nodiscard]] std::string why_not_cold() const;
};

/// The upper limit of sets: each takes time to fill and a plan of its own.
inline constexpr std::size_t max_sets = 512;

/// The fewest sets that are cold, or as many as the memory limit holds (at least one). A set passes `set_bytes` through
/// the cache and takes `footprint_bytes` of memory, which are at least as many.
[[nodiscard]] Rotation plan_rotation(std::size_t set_bytes, std::size_t footprint_bytes,
                                     std::size_t last_level_cache_bytes, std::size_t memory_limit_bytes);

}  // namespace thresher::arena
