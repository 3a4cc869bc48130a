#pragma once
/// Over how many input sets cold calls rotate, and whether that makes them cold.
#include <cstddef>
#include <string>

namespace thresher::arena {

struct Rotation {
  std::size_t num_sets = 1;
  std::size_t set_bytes = 0;               ///< inputs and outputs of one set
  std::size_t last_level_cache_bytes = 0;  ///< 0 where the system does not tell
  std::size_t memory_limit_bytes = 0;      ///< what the sets together, with what surrounds them, may take

  [[nodiscard]] std::size_t rotated_bytes() const noexcept { return num_sets * set_bytes; }
  /// Cold: over 3 times the last-level cache passes before a set comes round again.
  [[nodiscard]] bool is_cold() const noexcept {
    return last_level_cache_bytes > 0 && (num_sets - 1) * set_bytes > 3 * last_level_cache_bytes;
  }
  /// Empty when cold, else one sentence that says why the cold times are not.
  [[nodiscard]] std::string why_not_cold() const;
};

/// More sets than this are never made: each takes time to fill and a plan of its own.
inline constexpr std::size_t max_sets = 512;

/// The fewest sets that are cold, or as many as the memory limit holds (at least one). A set takes `set_bytes` that
/// pass through the cache and `footprint_bytes` of memory, not less.
[[nodiscard]] Rotation plan_rotation(std::size_t set_bytes, std::size_t footprint_bytes,
                                     std::size_t last_level_cache_bytes, std::size_t memory_limit_bytes);

}  // namespace thresher::arena
