#include "arena/timing/rotation.hpp"

#include <gtest/gtest.h>

namespace thresher::arena {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

TEST(Rotation, MoreThanThreeCachesPassBeforeASetComesRoundAgain) {
  for (const std::size_t set_mib : {1U, 7U, 33U, 500U}) {
    const Rotation rotation = plan_rotation(set_mib * mib, set_mib * mib, 60 * mib, 100'000 * mib);
    EXPECT_TRUE(rotation.is_cold()) << set_mib;
    EXPECT_GT((rotation.num_sets - 1) * set_mib, 180U);
    EXPECT_EQ(rotation.why_not_cold(), "");
    const Rotation one_less{rotation.num_sets - 1, rotation.set_bytes, 60 * mib, 0};
    EXPECT_FALSE(one_less.is_cold()) << set_mib << ": a set more than needed";
  }
}

TEST(Rotation, SaysWhyItIsNotCold) {
  const Rotation rotation = plan_rotation(33 * mib, 33 * mib, 480 * mib, 330 * mib);
  EXPECT_EQ(rotation.num_sets, 10U);
  EXPECT_FALSE(rotation.is_cold());
  EXPECT_EQ(rotation.why_not_cold(),
            "rotated over 330 MiB, not over 3 times the last-level cache of 480 MiB: 330 MiB of memory were to be had");
}

TEST(Rotation, AnUnknownCacheIsNeverCalledCold) {
  const Rotation rotation = plan_rotation(33 * mib, 33 * mib, 0, 100'000 * mib);
  EXPECT_GT(rotation.rotated_bytes(), 3 * 64 * mib);
  EXPECT_FALSE(rotation.is_cold());
  EXPECT_NE(rotation.why_not_cold().find("unknown"), std::string::npos);
}

TEST(Rotation, WhatSurroundsASetCountsAgainstTheMemory) {
  EXPECT_EQ(plan_rotation(mib, 11 * mib, 60 * mib, 110 * mib).num_sets, 10U);
}

TEST(Rotation, TinySetsAreNotMadeByTheThousand) {
  const Rotation rotation = plan_rotation(1024, 2048, 480 * mib, 100'000 * mib);
  EXPECT_EQ(rotation.num_sets, max_sets);
  EXPECT_NE(rotation.why_not_cold().find("512 input sets are the most that are made"), std::string::npos);
}

TEST(Rotation, ThereIsAlwaysOneSet) {
  EXPECT_EQ(plan_rotation(33 * mib, 33 * mib, 480 * mib, 0).num_sets, 1U);
  EXPECT_EQ(plan_rotation(0, 0, 0, 0).num_sets, 1U);
}

}  // namespace
}  // namespace thresher::arena
