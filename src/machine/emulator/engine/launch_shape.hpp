#pragma once
/// How a kernel is launched.
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
  std::uint32_t registers_at_launch = 0;   ///< for each thread, as the compiler reported; 0: unknown, not checked
  /// Programmatic dependent launch: the grid before still runs. It writes inputs that are marked so, and outputs may be
  /// what it reads or writes.
  bool after_earlier_grid = false;
};

/// A multiprocessor of sm_90.
inline constexpr std::uint32_t registers_per_multiprocessor = 65536;
inline constexpr std::uint32_t max_block_shared_bytes = 227 * 1024;
inline constexpr std::uint32_t max_block_threads = 1024;
inline constexpr std::uint32_t max_cluster_blocks = 16;
inline constexpr std::uint32_t shared_bytes_per_multiprocessor = 228 * 1024;
inline constexpr std::uint32_t reserved_block_shared_bytes = 1024;
inline constexpr std::uint32_t threads_per_multiprocessor = 2048;

}  // namespace thresher::emulator
