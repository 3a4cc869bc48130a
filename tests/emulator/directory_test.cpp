// The directory of groups: every row that a group owns is in one tile, whatever the bounds; and what a kernel may get
// wrong with it.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "emulator/kernels/directory.hpp"
#include "emulator/support.hpp"

namespace thresher::emulator {
namespace {

using pipeline::bounds_beyond;
using pipeline::bounds_decrease;
using pipeline::bounds_negative;
using planted::DirectoryDefect;

/// What one walk is over; `rows` are those of the packed matrix, or of a slot.
struct Walk {
  std::vector<std::int32_t> bounds;
  std::uint32_t rows = 0;
  std::uint32_t columns = 1;
  bool has_slots = false;
};

class DirectoryOf {
 public:
  explicit DirectoryOf(Walk walk, DirectoryDefect defect = DirectoryDefect::none) : walk_(std::move(walk)) {
    const std::size_t count = walk_.bounds.size() - (walk_.has_slots ? 0 : 1);
    out_.resize(std::size_t{walk_.rows} * walk_.columns * (walk_.has_slots ? count : 1));
    params_.groups.bounds = {test::address_of(walk_.bounds)};
    params_.groups.count = static_cast<std::uint32_t>(count);
    params_.groups.rows = walk_.rows;
    params_.groups.slots = walk_.has_slots ? 1 : 0;
    params_.groups.column_tiles = walk_.columns;
    params_.out = {test::address_of(out_)};
    params_.flags = {test::address_of(flags_)};
    params_.kept = {test::address_of(kept_)};
    params_.defect = defect;
  }

  test::Subject subject() {
    test::Subject subject;
    subject.shape.grid = {3, 1, 1};
    subject.shape.block = 64;
    subject.shape.dynamic_shared_bytes = pipeline::directory_bytes(params_.groups.count);
    subject.shape.after_earlier_grid = true;
    test::add(subject.memory, "bounds", walk_.bounds, Use::earlier_input);
    test::add(subject.memory, "out", out_, Use::output);
    test::add(subject.memory, "flags", flags_, Use::output);
    test::add(subject.memory, "kept", kept_, Use::input);
    subject.kernel = [this] { planted::walk_directory(params_); };
    subject.correct = [this] { return out_ == wanted(); };
    return subject;
  }

  [[nodiscard]] std::uint32_t flags() const { return flags_[0]; }
  /// How many tiles a launch before had.
  void keep(std::uint32_t tiles) { kept_[0] = tiles; }

 private:
  static constexpr std::uint32_t untouched = 0xA5A5A5A5;  ///< as outputs are before a launch

  /// Row by row, as GroupedProblem says whose it is.
  [[nodiscard]] std::vector<std::uint32_t> wanted() const {
    std::vector<std::uint32_t> all(out_.size(), untouched);
    const auto limited = [&](std::int32_t bound) {
      return std::min<std::int64_t>(std::max<std::int64_t>(bound, 0), walk_.rows);
    };
    const auto own = [&](std::int64_t group, std::int64_t first, std::int64_t end) {
      for (std::int64_t at = first * walk_.columns; at < end * walk_.columns; ++at) {
        all[static_cast<std::size_t>(at)] = static_cast<std::uint32_t>(group + 1);
      }
    };
    std::int64_t start = walk_.has_slots ? 0 : limited(walk_.bounds[0]);
    for (std::int64_t group = 0; group < params_.groups.count; ++group) {
      const auto at = static_cast<std::size_t>(group);
      if (walk_.has_slots) {
        own(group, group * walk_.rows, group * walk_.rows + limited(walk_.bounds[at]));
      } else {
        const std::int64_t end = std::max<std::int64_t>(start, limited(walk_.bounds[at + 1]));
        own(group, start, end);
        start = end;
      }
    }
    return all;
  }

  Walk walk_;
  std::vector<std::uint32_t> out_;
  std::vector<std::uint32_t> flags_ = std::vector<std::uint32_t>(1);
  std::vector<std::uint32_t> kept_ = std::vector<std::uint32_t>(1);
  planted::DirectoryParams params_{};
};

std::uint32_t clean_walk(Walk walk, std::uint64_t schedules) {
  DirectoryOf directory(std::move(walk));
  test::expect_clean(directory.subject(), schedules);
  return directory.flags();
}

/// Groups of a few rows, many of them empty.
Walk ragged(std::size_t groups) {
  Walk walk;
  walk.bounds.push_back(3);
  for (std::size_t i = 0; i < groups; ++i) {
    walk.bounds.push_back(walk.bounds.back() + static_cast<std::int32_t>(i % 3 == 1 ? 0 : i * 7 % 20));
  }
  walk.rows = static_cast<std::uint32_t>(walk.bounds.back()) + 5;
  walk.columns = 2;
  return walk;
}

TEST(Directory, FindsEveryRowOnceHoweverManyGroupsThereAre) {
  for (const std::size_t groups : {1, 2, 3, 31, 32, 33, 64, 127, 129, 511, 513, 1024}) {
    EXPECT_EQ(clean_walk(ragged(groups), groups > 64 ? 4 : 16), 0U) << groups;
  }
}

TEST(Directory, FindsTheGroupsThatHaveRowsAmongManyThatHaveNone) {
  Walk walk{std::vector<std::int32_t>(513, 0), 100, 3};
  std::fill(walk.bounds.begin() + 200, walk.bounds.end(), 17);
  std::fill(walk.bounds.begin() + 512, walk.bounds.end(), 100);
  EXPECT_EQ(clean_walk(walk, 8), 0U);
  EXPECT_EQ(clean_walk({std::vector<std::int32_t>(40, 7), 20, 2}, 8), 0U);
}

TEST(Directory, CountsTheRowsOfSlots) {
  EXPECT_EQ(clean_walk({{5, 0, 16, 1}, 16, 2, true}, 32), 0U);
  Walk many{{}, 9, 1, true};
  for (int i = 0; i < 200; ++i) {
    many.bounds.push_back(i % 10);
  }
  EXPECT_EQ(clean_walk(many, 4), 0U);
}

TEST(Directory, LimitsNonsenseAndSaysSo) {
  EXPECT_EQ(clean_walk({{0, 10, 5, 20}, 20, 2}, 16), bounds_decrease);
  EXPECT_EQ(clean_walk({{0, 5, 2000000000, 8}, 8}, 16), bounds_beyond | bounds_decrease);
  EXPECT_EQ(clean_walk({{-7, 2, -1, 6}, 8}, 16), bounds_negative | bounds_decrease);
  EXPECT_EQ(clean_walk({{2, -3, 99}, 11, 2, true}, 16), bounds_negative | bounds_beyond);
  Walk decreasing{{}, 64};
  for (std::int32_t i = 100; i >= -30; --i) {
    decreasing.bounds.push_back(i);
  }
  EXPECT_EQ(clean_walk(decreasing, 4), bounds_decrease | bounds_beyond | bounds_negative);
  Walk extremes{{std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max(), 0}, 9};
  EXPECT_EQ(clean_walk(extremes, 16), bounds_decrease | bounds_beyond | bounds_negative);
}

TEST(TileWidths, AreDoubledUpTo64AndEvenlySpacedBeyond) {
  constexpr pipeline::TileWidths spaced{8, 192, 16};
  EXPECT_EQ(pipeline::tile_width_for(1, spaced), 8U);
  EXPECT_EQ(pipeline::tile_width_for(33, spaced), 64U);
  EXPECT_EQ(pipeline::tile_width_for(65, spaced), 80U);
  EXPECT_EQ(pipeline::tile_width_for(192, spaced), 192U);
  EXPECT_EQ(pipeline::tile_width_for(3, {128, 192, 16}), 128U);
  EXPECT_EQ(pipeline::tile_width_for(65, {8, 128}), 128U);
}

TEST(TileWidths, CutAGroupIntoAsFewTilesAsThereCanBeAndTheseEvenly) {
  for (const pipeline::TileWidths tile_widths : {pipeline::TileWidths{8, 192, 16}, pipeline::TileWidths{8, 160, 32},
                                                 pipeline::TileWidths{16, 64}, pipeline::TileWidths{64, 256}}) {
    for (std::uint32_t rows = 1; rows < 1000; ++rows) {
      const std::uint32_t tiles = (rows + tile_widths.most - 1) / tile_widths.most;
      const std::uint32_t each = pipeline::rows_of_tiles(rows, tiles, tile_widths);
      ASSERT_LE(each, tile_widths.most) << rows;
      ASSERT_EQ((rows + each - 1) / each, tiles) << rows;
    }
  }
  EXPECT_EQ(pipeline::rows_of_tiles(250, 2, {8, 192, 16}), 128U);
  EXPECT_EQ(pipeline::rows_of_tiles(130, 2, {8, 128}), 128U);
}

class DirectoryDefects : public ::testing::Test {
 protected:
  static Walk walk() { return {{0, 11, 11, 30, 37}, 40, 2}; }
  static void finds(DirectoryDefect defect, FindingKind kind, const std::vector<std::string>& words) {
    DirectoryOf directory(walk(), defect);
    test::expect_found(directory.subject(), kind, words);
  }
  /// Something is found, or the rows are wrong.
  static void is_wrong(DirectoryOf& directory) {
    const test::Subject subject = directory.subject();
    for (std::uint64_t seed = 0; seed < test::schedules; ++seed) {
      if (!test::findings_of(subject, seed).empty() || !subject.correct()) {
        return;
      }
    }
    FAIL() << "nothing was found";
  }
};

TEST_F(DirectoryDefects, CorrectOneIsClean) {
  DirectoryOf directory(walk());
  test::expect_clean(directory.subject());
}
TEST_F(DirectoryDefects, PrefixThatIsOneOff) {
  DirectoryOf directory(walk(), DirectoryDefect::one_off);
  is_wrong(directory);
}
TEST_F(DirectoryDefects, BoundsOfAnEarlierGridReadBeforeItHasEnded) {
  finds(DirectoryDefect::stale, FindingKind::earlier_grid, {"'bounds'"});
}
TEST_F(DirectoryDefects, WalkersThatDoNotWaitForTheDirectory) {
  finds(DirectoryDefect::unpublished, FindingKind::race, {"directory"});
}
TEST_F(DirectoryDefects, PrefixOfTheLaunchBefore) {
  DirectoryOf directory(walk(), DirectoryDefect::another_launch);
  directory.keep(6);
  is_wrong(directory);
}
TEST_F(DirectoryDefects, TwoBlocksOnOneTile) {
  finds(DirectoryDefect::two_blocks_on_a_tile, FindingKind::race, {"'out'"});
}
TEST_F(DirectoryDefects, LastPartialTileStoredWhole) {
  finds(DirectoryDefect::partial_stored_whole, FindingKind::race, {"'out'"});
}

}  // namespace
}  // namespace thresher::emulator
