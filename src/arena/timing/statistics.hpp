#pragma once
/// Medians, bootstrap intervals and what may be said from them.
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "arena/random.hpp"

namespace thresher::arena {

/// A value with its 95 % interval; low ≤ value ≤ high.
struct Estimate {
  double value = 0;
  double low = 0;
  double high = 0;
};

/// What a measured speed-up says about a contestant.
enum class Comparison : std::uint8_t { faster, slower, same, too_noisy };

/// "faster", "slower", "same", "too noisy to say".
[[nodiscard]] std::string_view name(Comparison comparison) noexcept;

/// Fewer rounds than this say next to nothing: the interval of a median of five already reaches from the least to the
/// greatest.
inline constexpr int min_rounds = 6;
/// Two contestants are called the same when neither the speed-up nor the noise leaves 1 by more than this factor.
inline constexpr double same_factor = 1.02;

/// Median; the mean of the middle two for an even count. `values` is not empty.
[[nodiscard]] double median(std::span<const double> values);

/// Median with a percentile-bootstrap 95 % interval. `values` is not empty.
[[nodiscard]] Estimate median_estimate(std::span<const double> values, Random& random);

/// Geometric mean over problems of the median of each problem's ratios, with a 95 % interval from resampling the rounds
/// of every problem. No list is empty, every ratio is > 0.
[[nodiscard]] Estimate geometric_mean(std::span<const std::vector<double>> ratios_by_problem, Random& random);

/// How probable it is that `greater` lies so much above `smaller` by chance, when both are drawn from one distribution:
/// the one-sided rank test of Mann and Whitney. Neither is empty.
[[nodiscard]] double rank_test(std::span<const double> greater, std::span<const double> smaller);

/// How far apart (a factor ≥ 1) the medians of two lists as long and as spread as these lie by chance, when both are
/// drawn from one distribution: further in one of a thousand draws. Neither is empty, every value is > 0.
[[nodiscard]] double chance_factor(std::span<const double> one, std::span<const double> other);

/// Whether `greater` lies beyond doubt above `smaller`: by chance less than once in a thousand times by their ranks,
/// and between the medians by more than chance_factor of them and more than `floor`, below which nothing would be
/// proved.
[[nodiscard]] bool is_beyond_doubt(std::span<const double> greater, std::span<const double> smaller, double floor);

/// How far (a factor ≥ 1) the baseline's ratio to itself leaves 1: its interval, or 1 if that is tighter than can be
/// told.
[[nodiscard]] double noise_factor(const Estimate& baseline_against_itself) noexcept;

/// `speedup` > 1 means that the contestant needs less time. A winner's interval must clear 1 by more than the noise. In
/// fewer than `min_rounds` nobody wins, and only who is several times slower in all of them has lost.
[[nodiscard]] Comparison compare(const Estimate& speedup, const Estimate& baseline_against_itself, int rounds) noexcept;

}  // namespace thresher::arena
