#include "arena/results/shard.hpp"
#include "arena/results/shard_json.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "arena/expect_error.hpp"

namespace thresher::arena {
namespace {

TEST(Shard, IsAPartOfACount) {
  EXPECT_EQ(parse_shard("1/1"), (Shard{1, 1}));
  EXPECT_EQ(parse_shard("2/3"), (Shard{2, 3}));
  EXPECT_EQ(parse_shard("4096/4096"), (Shard{4096, 4096}));
  EXPECT_EQ(label({2, 3}), "2/3");
  for (const char* text : {"",     "/",    "1",    "1/",   "/3",   "0/3",   "4/3",   "0/0",    "-1/3",
                           "+1/3", "1/+3", " 1/3", "1/3 ", "1 /3", "1/3/3", "1.0/3", "1/4097", "4294967297/4294967298",
                           "a/b",  "1\\3", "0x1/3"}) {
    EXPECT_FALSE(parse_shard(text)) << text;
  }
}

/// On each suite a baseline and `challengers` that are held against it.
std::vector<MatchRecord> field(int suites, int challengers) {
  std::vector<MatchRecord> matches;
  for (int suite = 0; suite < suites; ++suite) {
    const std::string name = "s" + std::to_string(suite);
    matches.push_back({name, "base", "base"});
    for (int challenger = 0; challenger < challengers; ++challenger) {
      matches.push_back({name, "c" + std::to_string(challenger), "base"});
    }
  }
  return matches;
}

std::vector<MatchRecord> dealt(std::vector<MatchRecord> matches, int count, std::vector<double> costs = {}) {
  costs.resize(matches.size(), 1);
  deal(matches, costs, count);
  return matches;
}

/// Pairings by shard: what is held against a baseline.
std::map<int, int> pairings(const std::vector<MatchRecord>& matches) {
  std::map<int, int> found;
  for (const MatchRecord& match : matches) {
    found[match.shard] += match.is_baseline() ? 0 : 1;
  }
  return found;
}

TEST(StridedTiles, EveryMatchHasOneShardAndTheShardsAreEven) {
  for (const int suites : {1, 2, 5}) {
    for (const int challengers : {1, 2, 7}) {
      for (const int count : {1, 2, 3, 8, 40, 4096}) {
        const auto matches = dealt(field(suites, challengers), count);
        const int whole = suites * challengers;
        for (const auto& [shard, number] : pairings(matches)) {
          EXPECT_TRUE(shard >= 1 && shard <= count) << shard;
          EXPECT_GE(number, whole / count);
          EXPECT_LE(number, (whole + count - 1) / count) << suites << " " << challengers << " " << count;
        }
        EXPECT_EQ(pairings(matches).size(), static_cast<std::size_t>(std::min(whole, count)));
        EXPECT_EQ(dealt(field(suites, challengers), count), matches) << "the deal is the same every time";
      }
    }
  }
}

TEST(StridedTiles, WhatIsHeldAgainstABaselineHasItsRowInTheSameShard) {
  const auto matches = dealt(field(3, 5), 4);
  std::set<std::size_t> all;
  for (int shard = 1; shard <= 4; ++shard) {
    const std::vector<std::size_t> held = matches_held(matches, shard);
    EXPECT_TRUE(std::is_sorted(held.begin(), held.end()));
    std::set<std::string> rows;
    for (const std::size_t place : held) {
      EXPECT_TRUE(matches[place].shard == shard || matches[place].is_baseline());
      if (matches[place].is_baseline()) {
        rows.insert(matches[place].suite);
      } else {
        EXPECT_TRUE(rows.contains(matches[place].suite)) << "the baseline's own row comes first";
      }
      all.insert(place);
    }
  }
  EXPECT_EQ(all.size(), matches.size());
  for (const MatchRecord& row : matches) {
    EXPECT_TRUE(!row.is_baseline() || std::any_of(matches.begin(), matches.end(),
                                                  [&](const MatchRecord& match) {
                                                    return !match.is_baseline() && match.suite == row.suite &&
                                                           match.shard == row.shard;
                                                  }))
        << "a row counts where it is needed: " << row.suite;
  }
}

TEST(StridedTiles, ASuiteThatCostsMoreIsSpreadWider) {
  std::vector<double> costs(10, 1);
  std::fill(costs.begin() + 5, costs.end(), 10.0);
  const auto matches = dealt(field(2, 4), 4, costs);
  EXPECT_EQ(matches[4].shard, 1) << "all of the cheap suite in one";
  EXPECT_EQ(pairings(matches)[1], 5) << "with the first of the other";
  EXPECT_EQ(matches[9].shard, 4);
}

TEST(StridedTiles, ABaselineThatNobodyMeetsIsDealtByItself) {
  const auto matches = dealt({{"a", "base", "base"}, {"b", "base", "base"}, {"b", "c", "base"}}, 2);
  EXPECT_EQ(matches[0].shard, 1);
  EXPECT_EQ(matches[1].shard, 2);
  EXPECT_EQ(matches_held(matches, 1), std::vector<std::size_t>{0}) << "of another suite";
}

TEST(StridedTiles, MoreShardsThanPairingsLeaveSomeEmpty) {
  const auto matches = dealt(field(1, 1), 3);
  std::size_t held = 0;
  for (int shard = 1; shard <= 3; ++shard) {
    held += matches_held(matches, shard).size();
  }
  EXPECT_EQ(held, 2U);
  EXPECT_TRUE(dealt({}, 3).empty());
}

TEST(Shard, NumbersAreSaidAsRanges) {
  EXPECT_EQ(ranges(std::vector<int>{}), "");
  EXPECT_EQ(ranges(std::vector{2}), "2");
  EXPECT_EQ(ranges(std::vector{2, 3}), "2, 3");
  EXPECT_EQ(ranges(std::vector{1, 3, 4, 5, 9}), "1, 3-5, 9");
}

constexpr const char* arguments =
    R"({"suites":[{"name":"s0","text":"x"}],"pitches":[{"file":"p","text":"y"}],"seconds":6})";

TEST(ShardJson, AShardIsReadBackAsItWasWritten) {
  EXPECT_FALSE(shard_from_json(arguments));
  EXPECT_FALSE(merge_from_json(arguments));
  const std::string with = add_shard(arguments, {{2, 3}, dealt(field(1, 2), 3)});
  const auto read = shard_from_json(with);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->shard, (Shard{2, 3}));
  EXPECT_EQ(read->matches, dealt(field(1, 2), 3));

  const std::string merged = add_merge(with, {3, {{2, "cpu", R"({"name":"n"})", "b", "e", "ab", {0, 2}}}, {1, 3}});
  EXPECT_FALSE(shard_from_json(merged));
  const auto merge = merge_from_json(merged);
  ASSERT_TRUE(merge);
  EXPECT_EQ(merge->count, 3);
  EXPECT_EQ(merge->missing, (std::vector{1, 3}));
  ASSERT_NE(merge->shard_of(2), nullptr);
  EXPECT_EQ(merge->shard_of(2)->machine, R"({"name":"n"})");
  EXPECT_EQ(merge->shard_of(2)->hash, "ab");
  EXPECT_EQ(merge->shard_of(1), nullptr);
  EXPECT_EQ(nlohmann::json::parse(merged)["suites"], nlohmann::json::parse(arguments)["suites"]);
}

TEST(ShardJson, WhatThresherDidNotWriteIsNamed) {
  for (const char* json :
       {R"({"shard":7})", R"({"shard":{}})", R"({"shard":{"number":0,"count":3,"matches":[]}})",
        R"({"shard":{"number":4,"count":3,"matches":[]}})", R"({"shard":{"number":1,"count":4097,"matches":[]}})",
        R"({"shard":{"number":1,"count":3,"matches":[{"suite":"a","contestant":"b","baseline":"b","shard":4}]}})",
        R"({"shard":{"number":1,"count":3,"matches":[{"suite":"a"}]}})"}) {
    EXPECT_NE(error_of([&] { (void)shard_from_json(json); }), "") << json;
  }
  for (const char* json : {R"({"merged":[]})", R"({"merged":{"count":0,"shards":[],"missing":[]}})",
                           R"({"merged":{"count":2,"shards":[{"shard":3}],"missing":[]}})",
                           R"({"merged":{"count":2,"shards":[],"missing":[3]}})"}) {
    EXPECT_NE(error_of([&] { (void)merge_from_json(json); }), "") << json;
  }
}

TEST(ShardJson, ShardsOfOneTournamentDifferInNothingElse) {
  const auto of = [](const std::string& from, Shard shard, int challengers = 2) {
    return add_shard(from, {shard, dealt(field(1, challengers), shard.count)});
  };
  const auto changed = [](const char* old, const char* by) {
    std::string text = arguments;
    return text.replace(text.find(old), std::string(old).size(), by);
  };
  const std::string one = of(arguments, {1, 2});
  EXPECT_EQ(differing_argument(one, of(arguments, {2, 2})), "");
  EXPECT_EQ(differing_argument(one, of(changed(R"("file":"p")", R"("file":"/q")"), {2, 2})), "");
  EXPECT_EQ(differing_argument(one, of(changed(R"("text":"y")", R"("text":"z")"), {2, 2})), "pitches");
  EXPECT_EQ(differing_argument(one, of(changed(R"("text":"x")", R"("text":"z")"), {2, 2})), "suites");
  EXPECT_EQ(differing_argument(one, of(changed(":6", ":7"), {2, 2})), "seconds");
  EXPECT_EQ(differing_argument(one, of(arguments, {2, 2}, 3)), "matches");
}

}  // namespace
}  // namespace thresher::arena
