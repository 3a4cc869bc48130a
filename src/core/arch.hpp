#pragma once
/// Architectures for which strategies have their own machine code.
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace thresher {

/// The names are those of CUDA's compiler targets. A GPU that is none of these runs code for any architecture.
enum class Arch : std::uint8_t {
  cpu,
  sm_90a,   ///< Hopper: H100, H200
  sm_100a,  ///< Blackwell: B200
  sm_100f,  ///< every Blackwell of compute capability 10.x
  sm_103a,  ///< Blackwell Ultra: GB300
};

inline constexpr std::array all_archs{Arch::cpu, Arch::sm_90a, Arch::sm_100a, Arch::sm_100f, Arch::sm_103a};

/// "cpu", "sm_90a", …
[[nodiscard]] std::string_view name(Arch arch) noexcept;
/// The architecture of that name; empty when there is none.
[[nodiscard]] std::optional<Arch> parse_arch(std::string_view text) noexcept;
/// Whether machine code for `code` runs on every card of `card`. Code for one architecture runs only there; code for a
/// family (sm_100f) runs on each architecture of it. The family's name stands for all of its cards.
[[nodiscard]] bool runs_on(Arch code, Arch card) noexcept;

}  // namespace thresher
