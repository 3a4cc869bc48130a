#pragma once
/// How random inputs are drawn.
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace thresher::arena {

enum class Distribution : std::uint8_t {
  contest,     ///< e2m1 magnitudes up to 1.5 with random sign, scales uniform in [0, 1)
  full_range,  ///< all e2m1 and all finite non-negative scale codes; gate and up have a standard deviation near 4;
               ///< attention: normal values, the logits with a standard deviation near 20
  normal,      ///< normal values, quantized where the format asks for it; gate and up near 1.5, logits near 1
  integers,    ///< small integers for which every step is exact, so that outputs must match bit for bit
  specials,    ///< normal, with Inf, NaN, negative zero, subnormals and NaN scales strewn in
};

inline constexpr std::array all_distributions{Distribution::contest, Distribution::full_range, Distribution::normal,
                                              Distribution::integers, Distribution::specials};

/// The distributions without Inf and NaN.
inline constexpr std::array ordinary_distributions{Distribution::contest, Distribution::full_range,
                                                   Distribution::normal, Distribution::integers};

/// "contest", "full_range", … as in suites and the ledger.
[[nodiscard]] std::string_view name(Distribution distribution) noexcept;
[[nodiscard]] std::optional<Distribution> distribution_from_name(std::string_view name) noexcept;

}  // namespace thresher::arena
