#pragma once
/// The status that the kernels of a call leave at the beginning of its workspace: 32-bit words, of which the first says
/// how many follow, and each of those has flags of the operation. Every call writes the first and all that it
/// announces; those before it need not be cleared.
#include <cstddef>
#include <cstdint>
#include <span>

namespace thresher::strategies {

[[nodiscard]] constexpr std::size_t status_bytes(std::size_t words) noexcept {
  return (1 + words) * sizeof(std::uint32_t);
}

/// All flags of `memory`, the words that there is room for.
[[nodiscard]] inline std::uint32_t flags_in(std::span<const std::uint32_t> memory) {
  std::uint32_t flags = 0;
  for (std::size_t i = 1; i < memory.size() && i <= memory.front(); ++i) {
    flags |= memory[i];
  }
  return flags;
}

}  // namespace thresher::strategies
