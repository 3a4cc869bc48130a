#pragma once
/// The modes in which calls are timed.
#include <array>
#include <cstdint>
#include <string_view>

namespace thresher::arena {

enum class TimingMode : std::uint8_t {
  cold_burst,      ///< rotating input sets, after a pause before each sample
  cold_sustained,  ///< rotating input sets, after 0.25 s of back-to-back calls and without a pause
  warm_burst,      ///< one input set, run once before each sample
  warm_sustained,
};

inline constexpr std::array all_modes{TimingMode::cold_burst, TimingMode::cold_sustained, TimingMode::warm_burst,
                                      TimingMode::warm_sustained};
/// The modes that decide a verdict; the others are only shown. Where nothing is cold, the warm ones decide.
inline constexpr std::array cold_modes{TimingMode::cold_burst, TimingMode::cold_sustained};
inline constexpr std::array warm_modes{TimingMode::warm_burst, TimingMode::warm_sustained};
/// The mode of predictions, standings and tuning: cold where a suite is timed cold.
inline constexpr std::array headline_modes{TimingMode::cold_burst, TimingMode::warm_burst};

/// "cold burst", … as in the ledger and the report.
[[nodiscard]] std::string_view name(TimingMode mode) noexcept;
/// Throws Error(invalid_argument) for anything else.
[[nodiscard]] TimingMode mode_from_name(std::string_view name);

[[nodiscard]] constexpr bool is_cold(TimingMode mode) noexcept {
  return mode == TimingMode::cold_burst || mode == TimingMode::cold_sustained;
}
[[nodiscard]] constexpr bool is_burst(TimingMode mode) noexcept {
  return mode == TimingMode::cold_burst || mode == TimingMode::warm_burst;
}

}  // namespace thresher::arena
