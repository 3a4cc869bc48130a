#include "arena/timing/statistics.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace thresher::arena {
namespace {

TEST(Statistics, MedianOfOddAndEvenCounts) {
  EXPECT_EQ(median(std::vector<double>{3, 1, 2}), 2);
  EXPECT_EQ(median(std::vector<double>{4, 1, 2, 3}), 2.5);
  EXPECT_EQ(median(std::vector<double>{7}), 7);
}

TEST(Statistics, MedianIgnoresAnOutlier) {
  Random random(1);
  const Estimate estimate = median_estimate(std::vector<double>{10, 10.1, 9.9, 10, 10.2, 9.8, 1000}, random);
  EXPECT_NEAR(estimate.value, 10, 0.01);
  EXPECT_LT(estimate.low, 10.01);
  EXPECT_GT(estimate.high, 9.99);
}

TEST(Statistics, NinetyFivePercentIntervalsHoldTheTruthAboutThatOften) {
  for (const int count : {7, 15, 40}) {
    Random random(static_cast<std::uint64_t>(count));
    int held = 0;
    constexpr int trials = 400;
    for (int trial = 0; trial < trials; ++trial) {
      std::vector<double> values;
      for (int i = 0; i < count; ++i) {
        values.push_back(std::exp(0.1 * random.normal()));
      }
      const Estimate estimate = median_estimate(values, random);
      held += estimate.low <= 1 && 1 <= estimate.high ? 1 : 0;
    }
    EXPECT_GE(held, 0.90 * trials) << count;
    EXPECT_LE(held, 0.995 * trials) << count;
  }
}

TEST(Statistics, GeometricMeanIsOverTheMediansOfTheProblems) {
  Random random(3);
  const std::vector<std::vector<double>> ratios{{2, 2, 2}, {8, 8, 8}, {1, 4, 100}};
  const Estimate estimate = geometric_mean(ratios, random);
  EXPECT_NEAR(estimate.value, 4, 1e-12);
  EXPECT_LT(estimate.low, estimate.value);
  EXPECT_GT(estimate.high, estimate.value);
}

TEST(Statistics, GeometricMeanTreatsSpeedUpAndSlowDownAlike) {
  Random random(4);
  EXPECT_NEAR(geometric_mean(std::vector<std::vector<double>>{{0.5}, {2.0}}, random).value, 1, 1e-12);
}

TEST(Statistics, NoiseIsAFactorInBothDirections) {
  EXPECT_DOUBLE_EQ(noise_factor({1.0, 0.8, 1.1}), 1.25);
  EXPECT_DOUBLE_EQ(noise_factor({1.0, 0.95, 1.3}), 1.3);
  EXPECT_DOUBLE_EQ(noise_factor({1.0, 1.0, 1.0}), 1.0);
}

TEST(Compare, AWinnerMustClearTheNoise) {
  const Estimate quiet{1, 0.99, 1.01};
  const Estimate loud{1, 0.8, 1.3};
  const Estimate ahead{1.2, 1.15, 1.25};
  const Estimate behind{1 / 1.2, 1 / 1.25, 1 / 1.15};
  EXPECT_EQ(compare(ahead, quiet, 10), Comparison::faster);
  EXPECT_EQ(compare(behind, quiet, 10), Comparison::slower);
  EXPECT_EQ(compare(ahead, loud, 10), Comparison::too_noisy);
  EXPECT_EQ(compare(behind, loud, 10), Comparison::too_noisy);
}

TEST(Compare, TheSameOnlyWhenNothingLargeIsLeftOpen) {
  const Estimate quiet{1, 0.99, 1.01};
  EXPECT_EQ(compare({1.0, 0.99, 1.01}, quiet, 10), Comparison::same);
  EXPECT_EQ(compare({1.05, 0.97, 1.2}, quiet, 10), Comparison::too_noisy);
  EXPECT_EQ(compare({1.0, 0.99, 1.01}, {1, 0.7, 1.4}, 10), Comparison::too_noisy);
}

TEST(Compare, TooFewRoundsSayNothing) {
  EXPECT_EQ(compare({5, 4.9, 5.1}, {1, 1, 1}, min_rounds - 1), Comparison::too_noisy);
  EXPECT_EQ(compare({5, 4.9, 5.1}, {1, 1, 1}, min_rounds), Comparison::faster);
}

TEST(Compare, OneRoundRejectsNobodyAndTwoWhoIsFarSlower) {
  EXPECT_EQ(compare({0.01, 0.01, 0.01}, {1, 1, 1}, 1), Comparison::too_noisy);
  EXPECT_EQ(compare({0.01, 0.01, 0.01}, {1, 1, 1}, 2), Comparison::slower);
  EXPECT_EQ(compare({0.5, 0.5, 0.5}, {1, 1, 1}, 2), Comparison::too_noisy) << "no factor that two rounds prove";
}

TEST(Statistics, RanksTellWhatLiesAboveByChance) {
  const std::vector<double> low{1.00, 1.02, 0.98, 1.01, 0.99, 1.03, 0.97, 1.04};
  std::vector<double> high = low;
  for (double& value : high) {
    value += 0.5;
  }
  EXPECT_NEAR(rank_test(low, low), 0.5, 0.05);
  EXPECT_LT(rank_test(high, low), 1e-3);
  EXPECT_GT(rank_test(low, high), 0.99);
  EXPECT_TRUE(is_beyond_doubt(high, low, 1.3));
  EXPECT_FALSE(is_beyond_doubt(high, low, 1.6)) << "beyond doubt, but no factor that matters";
  EXPECT_FALSE(is_beyond_doubt(std::span(high).first(4), low, 1.3)) << "too few to say";
}

std::vector<double> samples_of(double middle, double spread, std::size_t count, Random& random) {
  std::vector<double> samples(count);
  for (double& sample : samples) {
    sample = middle * std::exp(spread * random.normal());
  }
  return samples;
}

TEST(Statistics, TheSpreadOfTheSamplesDecidesWhatChanceDoes) {
  Random random(5);
  const std::vector<double> still = samples_of(1, 0.001, 12, random);
  const std::vector<double> wild = samples_of(1, 0.3, 12, random);
  EXPECT_LT(chance_factor(still, still), 1.005);
  EXPECT_GT(chance_factor(wild, wild), 1.2);
  EXPECT_LT(chance_factor(samples_of(1, 0.3, 100, random), samples_of(1, 0.3, 100, random)), chance_factor(wild, wild))
      << "many samples tell more";
  int found = 0;
  int accused = 0;
  for (int times = 0; times < 200; ++times) {
    found += is_beyond_doubt(samples_of(1.05, 0.005, 10, random), samples_of(1, 0.005, 10, random), 1.02) ? 1 : 0;
    accused += is_beyond_doubt(samples_of(1.05, 0.2, 10, random), samples_of(1, 0.2, 10, random), 1.02) ? 1 : 0;
  }
  EXPECT_GT(found, 195) << "a twentieth is plain on a quiet machine";
  EXPECT_LT(accused, 5) << "and nothing on a wild one";
}

TEST(Statistics, EqualsAreToldApartLessThanOnceInAThousandTimes) {
  Random random(3);
  int told_apart = 0;
  for (int times = 0; times < 4000; ++times) {
    std::vector<double> one(10);
    std::vector<double> other(10);
    for (std::size_t i = 0; i < one.size(); ++i) {
      one[i] = std::exp(0.3 * random.normal());
      other[i] = std::exp(0.3 * random.normal());
    }
    told_apart += is_beyond_doubt(one, other, 1) ? 1 : 0;
  }
  EXPECT_LE(told_apart, 12);
}

}  // namespace
}  // namespace thresher::arena
