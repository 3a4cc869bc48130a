#include "reference/region.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace thresher::reference {
namespace {

TEST(Region, TheWholeIsEveryRowAndColumn) {
  const Region region = whole({.m = 3, .n = 2, .k = 16});
  EXPECT_EQ(region.rows, (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_EQ(region.columns, (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(region.elements(), 6);
  EXPECT_EQ(whole({.m = 0, .n = 2, .k = 16}).elements(), 0);
}

TEST(Region, ASampleSeesEveryTileAndTheCorners) {
  for (const std::int64_t m : {0, 1, 2, 63, 64, 65, 129, 1000}) {
    for (const std::int64_t per_tile : {1, 5, 64, 100}) {
      const Region region = sample_every_tile({.m = m, .n = 130, .k = 16}, per_tile, 42);
      std::set<std::int64_t> tiles;
      for (const std::int64_t row : region.rows) {
        ASSERT_GE(row, 0);
        ASSERT_LT(row, m);
        tiles.insert(row / tile_side);
      }
      EXPECT_EQ(static_cast<std::int64_t>(tiles.size()), (m + tile_side - 1) / tile_side) << m << " " << per_tile;
      EXPECT_LE(static_cast<std::int64_t>(region.rows.size()), per_tile * (m + tile_side - 1) / tile_side + per_tile);
      EXPECT_TRUE(std::is_sorted(region.rows.begin(), region.rows.end(), std::less_equal<>()) ||
                  region.rows.size() < 2);
      EXPECT_EQ(std::adjacent_find(region.rows.begin(), region.rows.end()), region.rows.end());
      if (m > 1 && (per_tile > 1 || m > tile_side)) {
        EXPECT_EQ(region.rows.front(), 0);
      }
      if (m > 0) {
        EXPECT_EQ(region.rows.back(), m - 1);
        EXPECT_EQ(region.columns.back(), 129);
      }
    }
  }
}

TEST(Region, AnotherSeedLooksElsewhere) {
  const DualGemmProblem problem{.m = 512, .n = 512, .k = 16};
  EXPECT_EQ(sample_every_tile(problem, 4, 1).rows, sample_every_tile(problem, 4, 1).rows);
  EXPECT_NE(sample_every_tile(problem, 4, 1).rows, sample_every_tile(problem, 4, 2).rows);
}

}  // namespace
}  // namespace thresher::reference
