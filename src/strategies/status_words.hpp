#pragma once
/// The status that the kernels of a call write to the beginning of its workspace: 32-bit words. The first is the number
/// of words that follow; each of those has flags of the operation. Every call writes the first word and all that it
/// announces, so they need not be cleared before.
#include <cstddef>
#include <cstdint>
#include <span>

namespace thresher::strategies {

[[nodiscard]] constexpr std::size_t status_bytes(std::size_t words) noexcept {
  return (1 + words) * sizeof(std::uint32_t);
}

/// All flags of `memory`, which may hold fewer words than announced.
[[nodiscard]] inline std::uint32_t flags_in(std::span<const std::uint32_t> memory) {
  std::uint32_t flags = 0;
  for (std::size_t i = 1; i < memory.size() && i <= memory.front(); ++i) {
    flags |= memory[i];
  }
  return flags;
}

}  // namespace thresher::strategies
