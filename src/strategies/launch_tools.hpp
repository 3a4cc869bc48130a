#pragma once
/// What binding a launch to its tensors takes, whatever the operation.
#include <cstdint>

namespace thresher::strategies {

/// A pointer as kernels are given it.
[[nodiscard]] inline std::uint64_t device_address(const void* pointer) noexcept {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

}  // namespace thresher::strategies
