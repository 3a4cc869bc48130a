#include "arena/ledger/merge.hpp"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "arena/expect_error.hpp"
#include "arena/ledger/ledger.hpp"
#include "arena/predictions/predictions.hpp"
#include "arena/report/machines.hpp"
#include "arena/report/run_json.hpp"
#include "arena/report/standings.hpp"
#include "arena/results/shard_json.hpp"
#include "support/scratch_folder.hpp"

namespace thresher::arena {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// A tournament of two baselines and of five that are held against them, as pitches are, in three shards, each on a
/// machine of its own.
class MergeTest : public ::testing::Test {
 protected:
  static constexpr int count = 3;

  static std::vector<MatchRecord> matches(int shards = count) {
    std::vector<MatchRecord> all{{"origin", "dual_gemm/base", "dual_gemm/base"},
                                 {"origin", "dual_gemm/other", "dual_gemm/other"}};
    for (const char* name : {"a", "b", "c"}) {
      all.push_back({"origin", std::string("dual_gemm/") + name, "dual_gemm/base"});
    }
    for (const char* name : {"d", "e"}) {
      all.push_back({"origin", std::string("dual_gemm/") + name, "dual_gemm/other"});
    }
    deal(all, std::vector<double>(all.size(), 1), shards);
    return all;
  }

  static RunRecord shard_run(int number, int shards = count) {
    RunRecord run;
    run.started = "2026-11-21T01:02:0" + std::to_string(number) + "Z";
    run.device = "cuda:" + std::to_string(number - 1);
    run.seed = 18'000'000'000'000'000'000U;
    run.shard = ShardRecord{{number, shards}, matches(shards)};
    run.arguments = add_shard(R"({"suites":[{"name":"origin","text":"x"}],"pitches":[],"seconds":6})", *run.shard);
    run.context = {"sources", R"({"compiler":"x"})",
                   R"({"gpu":"H200","name":"node)" + std::to_string(number) + R"("})"};
    run.key = run_key(run);
    return run;
  }

  static Entry entry_of(const RunRecord& run, std::size_t place) {
    const MatchRecord& match = run.shard->matches[place];
    Entry entry;
    entry.ordinal = static_cast<std::int64_t>(place);
    entry.suite = match.suite;
    entry.contestant = match.contestant;
    entry.baseline = match.baseline;
    entry.verdict = match.is_baseline() ? Verdict::baseline : Verdict::accepted;
    entry.sentence = "of shard " + label(run.shard->shard);
    entry.context = run.context;
    entry.gates = {{GateKind::correct, Outcome::passed, "fine"}, {GateKind::verdict, Outcome::passed, "so it is"}};
    Measurement measurement;
    measurement.problem = "1x8x16 fp16";
    measurement.rounds = 7;
    measurement.baseline_us = {2, 1.5, 2.5};
    measurement.contestant_us = {1, 0.1 + 0.2, 1.1};
    measurement.floor_us = 0.25;
    measurement.samples = R"({"baseline_us":[2.0],"rotation":{"why_not_cold":""}})";
    entry.measurements = {measurement};
    return entry;
  }

  static PredictionRecord prediction_of(const Entry& entry) {
    PredictionRecord prediction;
    prediction.ordinal = entry.ordinal;
    prediction.suite = entry.suite;
    prediction.contestant = entry.contestant;
    prediction.problem = "1x8x16 fp16";
    prediction.predicted_us = 1.25;
    prediction.frozen = "2026-11-21T01:02:03Z";
    return prediction;
  }

  std::string ledger(int number) const { return (folder_ / ("shard" + std::to_string(number) + ".sqlite")).string(); }
  std::vector<std::string> ledgers() const { return {ledger(1), ledger(2), ledger(3)}; }

  /// As a tournament writes it: the shard's own matches and its baselines' rows.
  static void write(const std::string& path, const RunRecord& run, bool is_finished = true) {
    Ledger ledger(path, Ledger::Access::write);
    const std::int64_t id = ledger.begin(run);
    for (const std::size_t place : matches_held(run.shard->matches, run.shard->shard.number)) {
      ledger.freeze(id, std::vector{prediction_of(entry_of(run, place))});
      ledger.append(id, entry_of(run, place));
    }
    if (is_finished) {
      ledger.finish(id);
    }
  }

  void write_all() const {
    for (int number = 1; number <= count; ++number) {
      write(ledger(number), shard_run(number));
    }
  }

  /// What is refused leaves no ledger behind.
  std::string refusal(const std::vector<std::string>& from, bool is_partial = false) const {
    const std::string sentence = error_of([&] { (void)merge_shards(into_, from, is_partial); });
    EXPECT_FALSE(fs::exists(into_)) << sentence;
    return sentence;
  }

  /// Of shards 1 and 2 when the second is other than it should be.
  std::string refusal_of_other(const std::function<void(RunRecord&)>& change) const {
    write(ledger(1), shard_run(1));
    RunRecord other = shard_run(2);
    change(other);
    write(ledger(2), other);
    return refusal({ledger(1), ledger(2)}, true);
  }

  std::string of_another(const std::string& why) const {
    return "shard 2/3 in ledger " + ledger(2) + " is of another tournament than shard 1/3 in ledger " + ledger(1) +
           ": " + why;
  }

  ScratchFolder folder_;
  fs::path into_ = folder_ / "all.sqlite";
};

TEST_F(MergeTest, TheRunIsThatOfTheWholeTournament) {
  write_all();
  const Merged merged = merge_shards(into_, ledgers(), false);
  EXPECT_EQ(merged.run.id, 1);
  EXPECT_TRUE(merged.is_new);
  EXPECT_EQ(merged.run.entries.size(), 7U);
  const Ledger ledger(into_, Ledger::Access::read);
  const RunRecord run = ledger.load(1);
  EXPECT_EQ(run.seed, shard_run(1).seed);
  EXPECT_EQ(run.device, "cuda") << "which of a machine's GPUs it was is no difference";
  EXPECT_EQ(run.started, shard_run(1).started);
  EXPECT_FALSE(run.ended.empty());
  EXPECT_EQ(run.suites, std::vector<std::string>{"origin"});
  ASSERT_EQ(run.predictions.size(), 7U);
  ASSERT_EQ(run.entries.size(), 7U) << "each baseline's row once";
  for (std::size_t place = 0; place < run.entries.size(); ++place) {
    const MatchRecord match = matches()[place];
    RunRecord expected = shard_run(match.shard);
    expected.entries = {entry_of(expected, place)};
    RunRecord found = shard_run(match.shard);
    found.entries = {run.entries[place]};
    EXPECT_EQ(run.predictions[place].ordinal, static_cast<std::int64_t>(place));
    EXPECT_EQ(merged.run.entries[place].ordinal, static_cast<std::int64_t>(place));
    EXPECT_EQ(json::parse(to_json(found))["entries"], json::parse(to_json(expected))["entries"]);
  }
  EXPECT_EQ(ledger.verify().faults, std::vector<std::string>{}) << "predictions stand before what they are about";
  EXPECT_EQ(ledger.verify().links, 16U);
}

TEST_F(MergeTest, MachinesAreToldApart) {
  write_all();
  (void)merge_shards(into_, ledgers(), false);
  const RunRecord run = Ledger(into_, Ledger::Access::read).load(1);
  EXPECT_EQ(part_text(run), "merged from 3 shards");
  EXPECT_EQ(place_text(run, run.entries.front()), "shard 1, node1");
  EXPECT_EQ(place_text(run, run.entries.back()), "shard 3, node3");
  const std::string text = standings(run);
  EXPECT_NE(text.find("dual_gemm/e      3      accepted"), std::string::npos) << text;
  EXPECT_NE(text.find("  shard 2: node2, H200, cuda:1\n"), std::string::npos) << text;
  const json exported = json::parse(to_json(run));
  EXPECT_EQ(exported["arguments"]["merged"]["shards"][2]["machine"]["name"], "node3");
  EXPECT_EQ(exported["entries"][5]["context"]["machine"]["name"], "node3");
  for (std::size_t number = 0; number < count; ++number) {
    const RunRecord shard = Ledger(ledgers()[number], Ledger::Access::read).runs().front();
    EXPECT_EQ(run.merge->shards[number].hash, shard.hash) << "the chain that it comes from";
    EXPECT_EQ(shard.hash.size(), 64U);
  }
}

TEST_F(MergeTest, TheBestIsLookedForAmongTimesOfOneMachine) {
  write_all();
  const RunRecord run = merge_shards(into_, ledgers(), false).run;
  const PredictionQuality quality = prediction_quality({&run, 1});
  EXPECT_EQ(quality.all.times, 7U);
  EXPECT_EQ(quality.all.shapes, 2U) << "one problem on the two machines that timed more than one contestant";
}

TEST_F(MergeTest, MergingTwiceWritesNothing) {
  write_all();
  (void)merge_shards(into_, ledgers(), false);
  const std::string head = Ledger(into_, Ledger::Access::read).verify().head;
  const Merged again = merge_shards(into_, {ledger(3), ledger(1), ledger(2)}, true);
  EXPECT_FALSE(again.is_new);
  EXPECT_EQ(again.run.id, 1);
  EXPECT_EQ(Ledger(into_, Ledger::Access::read).verify().head, head);
}

TEST_F(MergeTest, ALedgerMayTakeWhatItHoldsItself) {
  for (int number = 1; number <= count; ++number) {
    write(into_.string(), shard_run(number));
  }
  EXPECT_EQ(merge_shards(into_, {into_.string()}, false).run.id, 4);
  EXPECT_FALSE(merge_shards(into_, {into_.string()}, false).is_new);
  const std::vector<RunRecord> runs = without_merged_shards(Ledger(into_, Ledger::Access::read).runs());
  ASSERT_EQ(runs.size(), 1U) << "no time counts twice";
  EXPECT_EQ(runs.front().id, 4);
  EXPECT_EQ(Ledger(into_, Ledger::Access::read).verify().faults, std::vector<std::string>{});
}

TEST_F(MergeTest, AShardThatIsMissingIsNamed) {
  write(ledger(1), shard_run(1));
  EXPECT_EQ(refusal({ledger(1)}),
            "shards 2, 3 of 3 are missing: name the ledgers that hold them, or merge the others with --partial");
  write(ledger(3), shard_run(3), false);
  EXPECT_EQ(refusal({ledger(1), ledger(3)}),
            "shards 2, 3 of 3 are missing (shard 3/3 in ledger " + ledger(3) +
                " is unfinished: --resume goes on with it): name the ledgers that hold them, or merge the others with "
                "--partial");
  const Merged merged = merge_shards(into_, {ledger(1), ledger(3)}, true);
  EXPECT_EQ(merged.run.merge->missing, (std::vector{2, 3}));
  const RunRecord run = Ledger(into_, Ledger::Access::read).load(1);
  EXPECT_EQ(part_text(run), "merged without shards 2, 3 of 3");
  EXPECT_NE(standings(run).find("  missing: 2, 3\n"), std::string::npos);
  write(ledger(2), shard_run(2));
  write(ledger(3), shard_run(3));
  EXPECT_EQ(merge_shards(into_, ledgers(), false).run.id, 2) << "an unfinished attempt does not stand in the way";
}

TEST_F(MergeTest, OnlyFinishedShardsAreMerged) {
  write(ledger(1), shard_run(1), false);
  EXPECT_EQ(refusal({ledger(1)}, true), "shard 1/3 in ledger " + ledger(1) +
                                            " is unfinished, and no finished one is here: --resume goes on with it");
}

TEST_F(MergeTest, AShardWithoutMatchesIsNotMissed) {
  RunRecord empty = shard_run(1, 40);
  int number = 1;
  while (!matches_held(empty.shard->matches, number).empty()) {
    ++number;
  }
  write(ledger(1), shard_run(number, 40));
  EXPECT_EQ(refusal({ledger(1)}, true), "shard " + std::to_string(number) + "/40 in ledger " + ledger(1) +
                                            " has no match, and no other shard is here: there is nothing to merge");
  std::vector<std::string> from;
  for (int other = 1; other <= 40; ++other) {
    if (!matches_held(empty.shard->matches, other).empty()) {
      from.push_back((folder_ / (std::to_string(other) + "of40.sqlite")).string());
      write(from.back(), shard_run(other, 40));
    }
  }
  EXPECT_EQ(merge_shards(into_, from, false).run.entries.size(), 7U);
  from.insert(from.begin(), ledger(1));
  EXPECT_FALSE(merge_shards(into_, from, false).is_new) << "the empty one makes no difference";
}

TEST_F(MergeTest, TwoRunsOfOneShardAreRefused) {
  write_all();
  const std::string copy = (folder_ / "copy.sqlite").string();
  write(copy, shard_run(2));
  EXPECT_EQ(refusal({ledger(1), ledger(2), ledger(3), copy}),
            "shard 2/3 in ledger " + copy + " was held twice: it is run 1 there and run 1 of ledger " + ledger(2) +
                ": name ledgers that hold it once");
  EXPECT_EQ(refusal({ledger(1), ledger(2), ledger(1)}), "ledger " + ledger(1) + " is named twice: name it once");
}

TEST_F(MergeTest, ShardsOfOtherTournamentsAreRefused) {
  EXPECT_EQ(refusal_of_other([](RunRecord& run) { run.seed = 7; }),
            of_another("its seed is 7, not 18000000000000000000"));
}

TEST_F(MergeTest, AnotherVersionOfThresherIsRefused) {
  EXPECT_EQ(refusal_of_other([](RunRecord& run) { run.context.source_hash = "others"; }),
            of_another("another version of Thresher held it (sources others, not sources)"));
}

TEST_F(MergeTest, AnotherCountIsRefused) {
  EXPECT_EQ(refusal_of_other([](RunRecord& run) { run = shard_run(2, 4); }),
            "shard 2/4 in ledger " + ledger(2) + " is of another tournament than shard 1/3 in ledger " + ledger(1) +
                ": it is one of 4 shards, not of 3");
}

TEST_F(MergeTest, AnotherDeviceIsRefused) {
  EXPECT_EQ(refusal_of_other([](RunRecord& run) { run.device = "cpu"; }), of_another("its device is cpu, not cuda:0"));
}

TEST_F(MergeTest, OtherArgumentsAreRefused) {
  EXPECT_EQ(refusal_of_other([](RunRecord& run) {
              run.arguments = run.arguments.replace(run.arguments.find(R"("text":"x")"), 10, R"("text":"y")");
            }),
            of_another("its suites are others"));
}

TEST_F(MergeTest, ALedgerThatWasChangedIsRefused) {
  write_all();
  sqlite3* database = nullptr;
  sqlite3_open(ledger(2).c_str(), &database);
  ASSERT_EQ(sqlite3_exec(database, "DROP TRIGGER measurements_no_UPDATE; UPDATE measurements SET contestant_us = 0.5",
                         nullptr, nullptr, nullptr),
            SQLITE_OK);
  sqlite3_close(database);
  const std::string sentence = refusal(ledgers());
  EXPECT_TRUE(sentence.starts_with("ledger " + ledger(2) +
                                   ": the result of dual_gemm/base on origin in run 1 was "
                                   "changed after it was written"))
      << sentence;
  EXPECT_TRUE(sentence.ends_with(": nothing was merged")) << sentence;
}

TEST_F(MergeTest, AChangedLedgerIsNotExtended) {
  write_all();
  (void)merge_shards(into_, {ledger(1)}, true);
  sqlite3* database = nullptr;
  sqlite3_open(into_.c_str(), &database);
  ASSERT_EQ(
      sqlite3_exec(database, "DROP TRIGGER runs_no_UPDATE; UPDATE runs SET device = 'cpu'", nullptr, nullptr, nullptr),
      SQLITE_OK);
  sqlite3_close(database);
  EXPECT_EQ(
      error_of([&] { (void)merge_shards(into_, ledgers(), false); }),
      "ledger " + into_.string() + ": the beginning of run 1 was changed after it was written: nothing was merged");
  EXPECT_EQ(Ledger(into_, Ledger::Access::read).runs().size(), 1U);
}

TEST_F(MergeTest, AFinishedShardHoldsAllThatItWasDealt) {
  write(ledger(1), shard_run(1));
  const RunRecord run = shard_run(2);
  {
    Ledger short_of_one(ledger(2), Ledger::Access::write);
    const std::int64_t id = short_of_one.begin(run);
    short_of_one.append(id, entry_of(run, matches_held(run.shard->matches, 2).front()));
    short_of_one.finish(id);
  }
  const std::string sentence = refusal({ledger(1), ledger(2)}, true);
  EXPECT_TRUE(sentence.starts_with("shard 2/3 in ledger " + ledger(2) + " is finished without its match ")) << sentence;
}

TEST_F(MergeTest, LedgersWithoutShardsAreNamed) {
  {
    const Ledger none(ledger(1), Ledger::Access::write);
  }
  EXPECT_EQ(refusal({ledger(1)}), "ledger " + ledger(1) + " holds no shard: `thresher tournament --shard` holds one");
  EXPECT_EQ(refusal({ledger(2)}), "ledger " + ledger(2) + ": there is no such file; a tournament makes one");
}

}  // namespace
}  // namespace thresher::arena
