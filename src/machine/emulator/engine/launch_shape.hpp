#pragma once
/// The shape of a launch.
#include <cstdint>

namespace thresher::emulator {

struct Extent {
  std::uint32_t x = 1, y = 1, z = 1;
  [[nodiscard]] std::uint64_t count() const { return std::uint64_t{x} * y * z; }
};

struct LaunchShape {
  Extent grid;                             ///< blocks
  std::uint32_t block = 32;                ///< threads, one-dimensional, at most 1024
  Extent cluster;                          ///< blocks; divides the grid
  std::uint32_t dynamic_shared_bytes = 0;  ///< at most 227 KiB
  std::uint32_t registers_at_launch = 0;   ///< per thread, as the compiler reported; 0: unknown, not checked
  /// Programmatic dependent launch (PDL): the previous grid still runs. It writes the inputs marked earlier_input, and
  /// it may read or write the outputs.
  bool after_earlier_grid = false;
  /// The next grid reads before it waits what an earlier one than this wrote: every block waits for earlier grids
  /// before it releases dependents or ends.
  bool releases_after_wait = false;
};

/// On a multiprocessor of sm_90.
inline constexpr std::uint32_t registers_per_multiprocessor = 65536;
inline constexpr std::uint32_t max_block_shared_bytes = 227 * 1024;
inline constexpr std::uint32_t max_block_threads = 1024;
inline constexpr std::uint32_t max_cluster_blocks = 16;
inline constexpr std::uint32_t shared_bytes_per_multiprocessor = 228 * 1024;
inline constexpr std::uint32_t reserved_block_shared_bytes = 1024;
inline constexpr std::uint32_t threads_per_multiprocessor = 2048;

}  // namespace thresher::emulator
