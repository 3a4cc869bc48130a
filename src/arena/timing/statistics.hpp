#pragma once
/// Medians, bootstrap intervals and comparisons.
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

/// The conclusion from a measured speed-up.
enum class Comparison : std::uint8_t { faster, slower, same, too_noisy };

/// "faster", "slower", "same", "too noisy to say".
[[nodiscard]] std::string_view name(Comparison comparison) noexcept;

/// Fewer rounds are almost worthless: the interval of a median of five already reaches from the least to the greatest.
inline constexpr int min_rounds = 6;
/// Two contestants are called the same when neither the speed-up nor the noise departs from 1 by more than this factor.
inline constexpr double same_factor = 1.02;

/// Median; the mean of the middle two for an even count. `values` is not empty.
[[nodiscard]] double median(std::span<const double> values);

/// Median with a percentile-bootstrap 95 % interval. `values` is not empty.
[[nodiscard]] Estimate median_estimate(std::span<const double> values, Random& random);

/// Geometric mean over problems of the median of each problem's ratios, with a 95 % interval from resampling the rounds
/// of every problem. No list is empty, every ratio is > 0.
[[nodiscard]] Estimate geometric_mean(std::span<const std::vector<double>> ratios_by_problem, Random& random);

/// The probability that `greater` lies so far above `smaller` by chance, if both have one distribution: the one-sided
/// rank test of Mann and Whitney. Neither is empty.
[[nodiscard]] double rank_test(std::span<const double> greater, std::span<const double> smaller);

/// How far apart (a factor ≥ 1) the medians of two lists of this size and spread lie by chance, if both have one
/// distribution. One draw in a thousand lies further apart. Neither is empty, every value is > 0.
[[nodiscard]] double chance_factor(std::span<const double> one, std::span<const double> other);

/// Whether `greater` exceeds `smaller` beyond doubt. The ranks must give a chance below one in a thousand. The medians
/// must differ by more than chance_factor, and by more than `floor`, below which nothing is proved.
[[nodiscard]] bool is_beyond_doubt(std::span<const double> greater, std::span<const double> smaller, double floor);

/// How far (a factor ≥ 1) the baseline's ratio to itself departs from 1: its interval, or 1 if that is narrower than
/// the resolution.
[[nodiscard]] double noise_factor(const Estimate& baseline_against_itself) noexcept;

/// `speedup` > 1 means that the contestant needs less time. A winner's interval must exceed 1 by more than the noise.
/// In fewer than `min_rounds` nothing wins, and only a contestant that is several times slower in all of them has lost.
[[nodiscard]] Comparison compare(const Estimate& speedup, const Estimate& baseline_against_itself, int rounds) noexcept;

}  // namespace thresher::arena
