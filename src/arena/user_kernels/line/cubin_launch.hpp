#pragma once
/// The launch of a user kernel on a GPU, as sent to the kernel's process.
#include <array>
#include <cstdint>

namespace thresher::arena::user_kernels {

struct CubinLaunch {
  std::array<std::uint32_t, 3> grid{1, 1, 1};   ///< blocks
  std::array<std::uint32_t, 3> block{1, 1, 1};  ///< threads
  std::uint32_t dynamic_shared_bytes = 0;
};

}  // namespace thresher::arena::user_kernels
