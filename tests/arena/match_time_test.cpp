// How long a match may take, and whose doing it is when it takes longer.
#include "arena/match_time.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <string>

namespace thresher::arena {
namespace {

class MatchTimeTest : public ::testing::Test {
 protected:
  std::optional<MatchOver> over() const {
    try {
      time_.check();
      return std::nullopt;
    } catch (const MatchOver& over) {
      return over;
    }
  }

  double now_s_ = 1000;
  MatchTime time_{[this] { return now_s_; }};
};

TEST_F(MatchTimeTest, HasNoEndWithoutALimit) {
  EXPECT_TRUE(std::isinf(time_.left_s()));
  time_.begin(0);
  now_s_ += 1e9;
  EXPECT_TRUE(std::isinf(time_.left_s()));
  EXPECT_FALSE(over());
}

TEST_F(MatchTimeTest, EndsAtItsLimitAndBeginsAnew) {
  time_.begin(10);
  now_s_ += 9;
  EXPECT_DOUBLE_EQ(time_.left_s(), 1);
  EXPECT_FALSE(over());
  now_s_ += 1;
  EXPECT_TRUE(time_.is_over());
  ASSERT_TRUE(over());
  EXPECT_EQ(
      std::string(over()->what()),
      "the match took longer than the 10 s that it may (--match-seconds), 0 s of them in the contestant's process");
  time_.begin(10);
  EXPECT_FALSE(over());
}

TEST_F(MatchTimeTest, IsTheContestantsDoingWhereMostOfItWasItsOwn) {
  time_.begin(10);
  now_s_ += 10;
  time_.add_contestants(5);
  ASSERT_TRUE(over());
  EXPECT_FALSE(over()->is_contestants());
  time_.add_contestants(0.5);
  EXPECT_TRUE(over()->is_contestants());
  EXPECT_NE(std::string(over()->what()).find("5.5 s of them in the contestant's process"), std::string::npos);
  time_.begin(10);
  now_s_ += 10;
  EXPECT_FALSE(over()->is_contestants()) << "an earlier match is not held against it";
}

TEST(UsualMatch, GrowsWithWhatThereIsToDo) {
  EXPECT_DOUBLE_EQ(usual_match_s(6, 0, 0), 600);
  EXPECT_DOUBLE_EQ(usual_match_s(6, 4, 12), 600 + 12 * 60 + 4 * 120);
}

}  // namespace
}  // namespace thresher::arena
