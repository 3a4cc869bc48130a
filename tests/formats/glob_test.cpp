#include "formats/glob.hpp"

#include <gtest/gtest.h>

#include <string>

namespace thresher::formats {
namespace {

TEST(Glob, APatternIsAllOfAName) {
  EXPECT_TRUE(matches("model.norm.weight", "model.norm.weight"));
  EXPECT_FALSE(matches("norm", "model.norm.weight"));
  EXPECT_FALSE(matches("model.norm", "model.norm.weight"));
  EXPECT_TRUE(matches("", ""));
  EXPECT_FALSE(matches("", "a"));
  EXPECT_FALSE(matches("?", ""));
}

TEST(Glob, AStarStandsForAnyCharactersAndNone) {
  for (const char* pattern : {"*", "**", "*norm*", "model.*", "*.weight", "model*norm*weight", "*model.norm.weight*",
                              "m*o*d*e*l.norm.weight", "model.????.weight", "model.*.w?ight"}) {
    EXPECT_TRUE(matches(pattern, "model.norm.weight")) << pattern;
  }
  for (const char* pattern : {"*norms*", "model.*.bias", "*.weigh", "model.???.weight", "*norm*norm*", "?"}) {
    EXPECT_FALSE(matches(pattern, "model.norm.weight")) << pattern;
  }
  EXPECT_TRUE(matches("*ab", "aab"));
  EXPECT_TRUE(matches("*", ""));
}

TEST(Glob, OtherCharactersStandForThemselves) {
  EXPECT_FALSE(matches("[ab]", "a"));
  EXPECT_TRUE(matches("[ab]\\", "[ab]\\"));
  EXPECT_TRUE(has_wildcards("a*"));
  EXPECT_TRUE(has_wildcards("a?"));
  EXPECT_FALSE(has_wildcards("a.[b]"));
}

TEST(Glob, ManyStarsCostNoMoreThanTheyMust) {
  std::string pattern;
  for (int i = 0; i < 1000; ++i) {
    pattern += "a*";
  }
  EXPECT_FALSE(matches(pattern + "b", std::string(100'000, 'a')));
}

}  // namespace
}  // namespace thresher::formats
