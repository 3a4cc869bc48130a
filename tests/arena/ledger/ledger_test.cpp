#include "arena/ledger/ledger.hpp"
#include "arena/report/run_json.hpp"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "arena/expect_error.hpp"
#include "support/scratch_folder.hpp"

namespace thresher::arena {
namespace {

namespace fs = std::filesystem;

class LedgerTest : public ::testing::Test {
 protected:
  static RunRecord sample_run(const std::string& key = "key") {
    RunRecord run;
    run.key = key;
    run.started = utc_now();
    run.device = "cpu";
    run.seed = 18'000'000'000'000'000'000U;
    run.arguments = R"({"suites":[]})";
    run.context = {"hash", R"({"compiler":"x"})", R"({"cpu":"y"})"};
    return run;
  }

  static Entry sample_entry(std::int64_t ordinal, const std::string& contestant = "dual_gemm/interleaved") {
    Entry entry;
    entry.ordinal = ordinal;
    entry.suite = "origin";
    entry.contestant = contestant;
    entry.baseline = "dual_gemm/two_pass";
    entry.pitch = R"({"title":"p"})";
    entry.verdict = Verdict::accepted;
    entry.sentence = "it is";
    entry.clocks = {"wall clock", 2400.0, 2600.5, {"power cap"}};
    entry.context = sample_run().context;
    entry.gates = {{GateKind::correct, Outcome::passed, "fine", CorrectEvidence{1, Numerics::exact, {}}},
                   {GateKind::timed, Outcome::not_judged, "why"}};
    Measurement measurement;
    measurement.problem = "1x8x16";
    measurement.mode = TimingMode::cold_burst;
    measurement.rounds = 7;
    measurement.baseline_us = {2, 1.5, 2.5};
    measurement.contestant_us = {1, 0.9, 1.1};
    measurement.speedup = {2, 1.9, 2.1};
    measurement.self = {1, 0.99, 1.01};
    measurement.comparison = "faster";
    measurement.floor_us = 0.25;
    measurement.sustained_us = 0.5;
    measurement.samples = R"({"baseline_us":[2.0]})";
    entry.measurements = {measurement};
    return entry;
  }

  static PredictionRecord sample_prediction(std::int64_t ordinal, const std::string& problem = "1x8x16") {
    PredictionRecord prediction;
    prediction.ordinal = ordinal;
    prediction.suite = "origin";
    prediction.contestant = "dual_gemm/interleaved";
    prediction.problem = problem;
    prediction.predicted_us = 1.25;
    prediction.why = "bound by memory";
    prediction.planner = R"({"device":"H200"})";
    prediction.panel = R"({"score":0.5})";
    prediction.frozen = "2026-11-21T01:02:03Z";
    return prediction;
  }

  /// One run: a prediction, another that nobody could make, and the measurement of the first.
  std::int64_t write_one_run() const {
    Ledger ledger(path_, Ledger::Access::write);
    const std::int64_t id = ledger.begin(sample_run());
    PredictionRecord unknown = sample_prediction(1);
    unknown.predicted_us.reset();
    ledger.freeze(id, std::vector{sample_prediction(0), unknown});
    ledger.append(id, sample_entry(0));
    ledger.finish(id);
    return id;
  }

  /// An edit by hand, which has to get rid of the triggers first.
  void edit(const std::string& sql) const {
    for (const char* table : {"runs", "run_ends", "entries", "gates", "measurements", "predictions", "chain"}) {
      for (const char* change : {"UPDATE", "DELETE"}) {
        ASSERT_EQ(sqlite("DROP TRIGGER " + std::string(table) + "_no_" + change), SQLITE_OK);
      }
    }
    ASSERT_EQ(sqlite(sql), SQLITE_OK) << sql;
  }

  std::vector<std::string> faults() const { return Ledger(path_, Ledger::Access::read).verify().faults; }

  int sqlite(const std::string& sql) const {
    sqlite3* database = nullptr;
    sqlite3_open(path_.c_str(), &database);
    const int code = sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr);
    sqlite3_close(database);
    return code;
  }

  std::string opening_error() const {
    return error_of([&] { const Ledger ledger(path_, Ledger::Access::write); });
  }

  ScratchFolder folder_;
  fs::path path_ = folder_.path() / "deep" / "ledger.sqlite";
};

TEST_F(LedgerTest, KeepsEverythingOfAnEntry) {
  Ledger ledger(path_, Ledger::Access::write);
  const std::int64_t id = ledger.begin(sample_run());
  ledger.append(id, sample_entry(0));
  ledger.finish(id);
  RunRecord expected = sample_run();
  expected.id = id;
  expected.entries = {sample_entry(0)};
  RunRecord loaded = Ledger(path_, Ledger::Access::read).load(id);
  expected.started = loaded.started;
  EXPECT_FALSE(loaded.ended.empty());
  expected.ended = loaded.ended;
  EXPECT_EQ(to_json(loaded), to_json(expected));
}

TEST_F(LedgerTest, IsAppendOnly) {
  {
    Ledger ledger(path_, Ledger::Access::write);
    const std::int64_t id = ledger.begin(sample_run());
    ledger.freeze(id, std::vector{sample_prediction(0)});
    ledger.append(id, sample_entry(0));
    ledger.finish(id);
  }
  for (const char* table :
       {"contexts", "runs", "run_ends", "entries", "gates", "measurements", "predictions", "chain"}) {
    EXPECT_EQ(sqlite("DELETE FROM " + std::string(table)) & 0xFF, SQLITE_CONSTRAINT) << table;
    EXPECT_EQ(sqlite("UPDATE " + std::string(table) + " SET rowid = rowid + 1000") & 0xFF, SQLITE_CONSTRAINT) << table;
  }
  EXPECT_EQ(sqlite("UPDATE entries SET verdict = 'accepted'") & 0xFF, SQLITE_CONSTRAINT);
}

TEST_F(LedgerTest, KeepsPredictionsWithTheirPlaceInTheChain) {
  const std::int64_t id = write_one_run();
  const RunRecord run = Ledger(path_, Ledger::Access::read).load(id);
  ASSERT_EQ(run.predictions.size(), 2U);
  EXPECT_EQ(run.predictions[0].predicted_us, 1.25);
  EXPECT_EQ(run.predictions[0].panel, sample_prediction(0).panel);
  EXPECT_EQ(run.predictions[0].hash.size(), 64U);
  EXPECT_FALSE(run.predictions[1].predicted_us);
  EXPECT_NE(run.predictions[0].hash, run.predictions[1].hash);
}

TEST_F(LedgerTest, AnUntouchedLedgerIsAsItWasWritten) {
  write_one_run();
  write_one_run();
  const Verification found = Ledger(path_, Ledger::Access::read).verify();
  EXPECT_EQ(found.faults, std::vector<std::string>{});
  EXPECT_EQ(found.links, 10U);
  EXPECT_EQ(found.head.size(), 64U);
}

TEST_F(LedgerTest, ALaterEditIsNamed) {
  struct Edit {
    const char* sql;
    std::vector<std::string> faults;
  };
  const std::string prediction = "the prediction of dual_gemm/interleaved on 1x8x16 in run 1 was ";
  const std::string result = "the result of dual_gemm/interleaved on origin in run 1 was ";
  for (const Edit& one : {
           Edit{"UPDATE predictions SET predicted_us = 1.0 WHERE ordinal = 0",
                {prediction + "changed after it was written"}},
           Edit{"UPDATE predictions SET panel = '{}' WHERE ordinal = 1", {prediction + "changed after it was written"}},
           Edit{"UPDATE predictions SET predicted_us = 1.5 WHERE ordinal = 1",
                {prediction + "changed after it was written"}},
           Edit{"DELETE FROM predictions WHERE ordinal = 1", {"prediction 2 was removed after it was written"}},
           Edit{"UPDATE measurements SET contestant_us = 0.5", {result + "changed after it was written"}},
           Edit{"DELETE FROM measurements", {result + "changed after it was written"}},
           Edit{"UPDATE gates SET outcome = 'passed'", {result + "changed after it was written"}},
           Edit{"UPDATE runs SET seed = '1'", {"the beginning of run 1 was changed after it was written"}},
           Edit{
               "INSERT INTO predictions SELECT 7, run, 2, suite, contestant, problem, 1.0, why, planner, panel, frozen "
               "FROM predictions WHERE id = 1",
               {prediction + "slipped in beside the chain"}},
       }) {
    fs::remove_all(path_.parent_path());
    write_one_run();
    edit(one.sql);
    EXPECT_EQ(faults(), one.faults) << one.sql;
  }
}

// Whoever edits a row and its hash breaks the link after it.
TEST_F(LedgerTest, AnEditThatHidesItselfBreaksTheNextLink) {
  write_one_run();
  edit("UPDATE predictions SET predicted_us = 1.0 WHERE ordinal = 0");
  sqlite("UPDATE chain SET hash = 'ab' WHERE id = 2");
  EXPECT_EQ(faults().size(), 2U);
  fs::remove_all(path_.parent_path());
  write_one_run();
  edit("DELETE FROM chain WHERE id = 3");
  const std::vector<std::string> found = faults();
  EXPECT_NE(std::find(found.begin(), found.end(), "link 4 is where link 3 was: links were removed"), found.end());
}

TEST_F(LedgerTest, APredictionAfterItsMeasurementIsNamed) {
  {
    Ledger ledger(path_, Ledger::Access::write);
    const std::int64_t id = ledger.begin(sample_run());
    ledger.append(id, sample_entry(0));
    ledger.freeze(id, std::vector{sample_prediction(0)});
  }
  EXPECT_EQ(faults(), std::vector<std::string>{"the prediction of dual_gemm/interleaved on 1x8x16 in run 1 was written "
                                               "after its measurement"});
}

// Version 1 had neither predictions nor the chain.
TEST_F(LedgerTest, ALedgerOfVersionOneIsBroughtUp) {
  write_one_run();
  edit("DROP TABLE chain");
  ASSERT_EQ(sqlite("DROP TABLE predictions"), SQLITE_OK);
  ASSERT_EQ(sqlite("PRAGMA user_version = 1"), SQLITE_OK);
  const Ledger ledger(path_, Ledger::Access::read);
  EXPECT_EQ(ledger.load(1).entries.size(), 1U);
  EXPECT_TRUE(ledger.load(1).predictions.empty());
  EXPECT_EQ(ledger.verify().faults, std::vector<std::string>{});
  EXPECT_EQ(ledger.verify().links, 3U) << "the run, its entry and its end";
  write_one_run();
  EXPECT_EQ(ledger.verify().faults, std::vector<std::string>{});
  EXPECT_NE(sqlite("UPDATE chain SET hash = ''"), SQLITE_OK);
}

TEST_F(LedgerTest, ALedgerThatSaysAnOlderVersionThanItsTablesIsDamaged) {
  write_one_run();
  ASSERT_EQ(sqlite("PRAGMA user_version = 1"), SQLITE_OK);
  EXPECT_EQ(opening_error(), "ledger " + path_.string() +
                                 " is damaged (it says version 1 and has the table predictions of version 2): keep it "
                                 "for repair and name another with --ledger");
}

/// What a disk that is full after so many bytes makes of a new ledger, as a status: 0, or 1 where `sentence` is not
/// said.
int made_where_files_end_at(rlim_t bytes, const fs::path& path, const std::string& sentence) {
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{bytes, bytes};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    ::_exit(error_of([&] { const Ledger ledger(path, Ledger::Access::write); }).starts_with(sentence) ? 0 : 1);
  }
  int status = 1;
  ::waitpid(child, &status, 0);
  return status;
}

TEST_F(LedgerTest, NothingStaysOfALedgerThatCouldNotBeMade) {
  const fs::path folder = path_.parent_path();
  for (const rlim_t bytes : {0, 512, 4096, 16384, 40000}) {
    EXPECT_EQ(made_where_files_end_at(bytes, path_, "ledger " + path_.string() + " cannot be written"), 0) << bytes;
    EXPECT_TRUE(fs::is_empty(folder)) << bytes;
  }
  std::ofstream(path_).close();  // what was there stays
  EXPECT_EQ(made_where_files_end_at(0, path_, "ledger " + path_.string() + " cannot be written"), 0);
  EXPECT_TRUE(fs::exists(path_));
  write_one_run();
}

TEST_F(LedgerTest, AContestantIsAllOrNothing) {
  Ledger ledger(path_, Ledger::Access::write);
  const std::int64_t id = ledger.begin(sample_run());
  ledger.append(id, sample_entry(0));
  Entry twice = sample_entry(0);
  EXPECT_NE(error_of([&] { ledger.append(id, twice); }), "");  // the place is taken
  EXPECT_EQ(ledger.load(id).entries.size(), 1U);
  EXPECT_EQ(ledger.load(id).entries[0].gates.size(), 2U);
  ledger.append(id, sample_entry(1));
  EXPECT_EQ(ledger.load(id).entries.size(), 2U);
}

TEST_F(LedgerTest, ResumesOnlyWhatIsUnfinishedTheSameAndNotHeld) {
  Ledger ledger(path_, Ledger::Access::write);
  std::int64_t unfinished = 0;
  {
    Ledger killed(path_, Ledger::Access::write);
    unfinished = killed.begin(sample_run());
    killed.append(unfinished, sample_entry(0));
    EXPECT_FALSE(ledger.resume("key").has_value()) << "its process is alive";
  }
  const std::int64_t finished = ledger.begin(sample_run());
  ledger.finish(finished);
  EXPECT_FALSE(ledger.resume("another key").has_value());
  const std::optional<RunRecord> found = ledger.resume("key");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->id, unfinished);
  EXPECT_EQ(found->seed, sample_run().seed);
  EXPECT_EQ(found->entries.size(), 1U);
  EXPECT_FALSE(Ledger(path_, Ledger::Access::write).resume("key").has_value()) << "it is held now";
}

TEST_F(LedgerTest, AProcessKilledInTheMiddleLosesOnlyItsTransaction) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    Ledger ledger(path_, Ledger::Access::write);
    const std::int64_t id = ledger.begin(sample_run());
    ledger.append(id, sample_entry(0));
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  Ledger ledger(path_, Ledger::Access::write);
  const std::optional<RunRecord> found = ledger.resume("key");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->entries.size(), 1U);
}

TEST_F(LedgerTest, SeveralProcessesAtOnceLoseNothing) {
  constexpr int processes = 4;
  constexpr int entries = 25;
  std::vector<pid_t> children;
  for (int i = 0; i < processes; ++i) {  // the file does not exist yet: they race for its creation too
    children.push_back(::fork());
    if (children.back() == 0) {
      int code = 1;
      try {
        Ledger ledger(path_, Ledger::Access::write);
        const std::int64_t id = ledger.begin(sample_run());
        for (int ordinal = 0; ordinal < entries; ++ordinal) {
          ledger.append(id, sample_entry(ordinal));
        }
        ledger.finish(id);
        code = 0;
      } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
      }
      ::_exit(code);
    }
  }
  for (const pid_t child : children) {
    int status = 1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  const Ledger ledger(path_, Ledger::Access::read);
  const std::vector<RunRecord> runs = ledger.runs();
  ASSERT_EQ(runs.size(), static_cast<std::size_t>(processes));
  for (const RunRecord& run : runs) {
    EXPECT_FALSE(run.ended.empty());
    EXPECT_EQ(ledger.load(run.id).entries.size(), static_cast<std::size_t>(entries));
  }
}

TEST_F(LedgerTest, ProcessesThatMakeOneLedgerTogetherWaitForEachOther) {
  constexpr int processes = 4;
  for (int round = 0; round < 40; ++round) {
    fs::remove_all(path_.parent_path());
    std::array<int, 2> gate{};
    ASSERT_EQ(::pipe(gate.data()), 0);
    std::vector<pid_t> children;
    for (int i = 0; i < processes; ++i) {
      children.push_back(::fork());
      if (children.back() == 0) {
        ::close(gate[1]);
        char byte = 0;
        (void)!::read(gate[0], &byte, 1);  // ends when the parent closes the gate: all start at once
        try {
          const Ledger ledger(path_, Ledger::Access::write);
          ::_exit(0);
        } catch (const std::exception& error) {
          std::fprintf(stderr, "%s\n", error.what());
          ::_exit(1);
        }
      }
    }
    ::close(gate[0]);
    ::close(gate[1]);
    for (const pid_t child : children) {
      int status = 1;
      ::waitpid(child, &status, 0);
      EXPECT_EQ(status, 0) << "round " << round;
    }
  }
}

/// Whether somebody who may read the file and write nothing beside it finds everything.
bool is_read_by_another_user(const fs::path& path) {
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr uid_t nobody = 65534;
    if (::getuid() == 0 && (::setgid(nobody) != 0 || ::setuid(nobody) != 0)) {
      ::_exit(2);
    }
    try {
      const Ledger ledger(path, Ledger::Access::read);
      const Verification verified = ledger.verify();
      ::_exit(ledger.runs().size() == 1 && verified.links > 0 && verified.faults.empty() ? 0 : 3);
    } catch (const Error&) {
      ::_exit(4);
    }
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST_F(LedgerTest, IsReadWhereNothingMayBeWritten) {
  const ScratchFolder folder;
  {
    Ledger ledger(folder / "ledger.sqlite", Ledger::Access::write);
    ledger.append(ledger.begin(sample_run()), sample_entry(0));
  }
  const auto readable = fs::perms::owner_read | fs::perms::group_read | fs::perms::others_read;
  const auto enterable = fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec;
  for (const auto& file : fs::directory_iterator(folder.path())) {
    fs::permissions(file.path(), readable);
  }
  fs::permissions(folder.path(), readable | enterable);
  EXPECT_TRUE(is_read_by_another_user(folder / "ledger.sqlite"));
  fs::permissions(folder.path(), fs::perms::owner_all);
}

TEST_F(LedgerTest, NamesOfNoFileAreRefused) {
  for (const Ledger::Access access : {Ledger::Access::read, Ledger::Access::write}) {
    EXPECT_EQ(error_of([&] { const Ledger ledger("", access); }),
              "no ledger is named: name a file with --ledger or THRESHER_LEDGER, or set HOME");
    EXPECT_EQ(error_of([&] { const Ledger ledger("/dev/null", access); }),
              "ledger /dev/null is not a regular file: name another with --ledger");
  }
  EXPECT_FALSE(fs::exists("/dev/null-runs"));
}

TEST_F(LedgerTest, AnotherVersionIsNamed) {
  {
    Ledger ledger(path_, Ledger::Access::write);
  }
  ASSERT_EQ(sqlite("PRAGMA user_version = 7"), SQLITE_OK);
  EXPECT_EQ(opening_error(),
            "ledger " + path_.string() +
                " is of version 7, and this Thresher reads version 2: name another file with --ledger");
}

TEST_F(LedgerTest, AnotherKindOfFileIsLeftAlone) {
  fs::create_directories(path_.parent_path());
  const std::string text(4096, 'x');
  std::ofstream(path_) << text;
  EXPECT_NE(opening_error().find("is damaged or no ledger"), std::string::npos);
  std::ifstream stream(path_);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(stream), {}), text);
  fs::remove(path_);
  ASSERT_EQ(sqlite("CREATE TABLE mine(x)"), SQLITE_OK);
  EXPECT_EQ(opening_error(), path_.string() + " is no ledger of Thresher: name another file with --ledger");
}

TEST_F(LedgerTest, ADamagedLedgerIsNamed) {
  {
    Ledger ledger(path_, Ledger::Access::write);
    const std::int64_t id = ledger.begin(sample_run());
    for (int ordinal = 0; ordinal < 40; ++ordinal) {
      ledger.append(id, sample_entry(ordinal));
    }
  }
  const auto size = fs::file_size(path_);
  ASSERT_GT(size, 16384U);
  std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(4096);
  file << std::string(8192, '\x5A');
  file.close();
  const std::string error = opening_error();
  EXPECT_NE(error.find("is damaged or no ledger"), std::string::npos) << error;
  EXPECT_NE(error.find("--ledger"), std::string::npos) << error;
  EXPECT_EQ(fs::file_size(path_), size);
}

TEST_F(LedgerTest, RecordsThatThresherDidNotWriteAreDamage) {
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  for (const std::string& sql :
       {std::string("UPDATE entries SET clocks = '{\"clock\":'"),
        std::string("UPDATE entries SET clocks = '{\"clock\":7}'"),
        std::string("UPDATE entries SET pitch = '{\"claim\":{}}'"),
        std::string("UPDATE entries SET verdict = 'victory'"), std::string("UPDATE gates SET gate = 'garden'"),
        std::string("UPDATE gates SET outcome = 'open'"), std::string("UPDATE measurements SET mode = 'tepid'"),
        std::string("UPDATE predictions SET panel = '{\"predicted\":1}'"),
        std::string("UPDATE predictions SET panel = '\"'"), std::string("UPDATE runs SET seed = 'x'"),
        std::string("UPDATE runs SET arguments = '{\"suites\":[{}]}'"),
        std::string("UPDATE runs SET arguments = '{\"shard\":{\"number\":2,\"count\":1,\"matches\":[]}}'"),
        std::string("UPDATE runs SET arguments = '{\"merged\":{\"count\":1,\"shards\":[{}],\"missing\":[]}}'"),
        std::string("UPDATE runs SET arguments = '" + deep + "'")}) {
    fs::remove_all(path_.parent_path());
    const std::int64_t id = write_one_run();
    edit(sql);
    const std::string error = error_of([&] { (void)Ledger(path_, Ledger::Access::read).load(id); });
    EXPECT_TRUE(error.starts_with("ledger " + path_.string() + " is damaged (")) << sql.substr(0, 100) << ": " << error;
  }
}

TEST_F(LedgerTest, WhatNobodyReadsOfARecordIsDamageWhereItIsExported) {
  const std::int64_t id = write_one_run();
  edit("UPDATE gates SET evidence = '" + std::string(100'000, '[') + "'");
  const RunRecord run = Ledger(path_, Ledger::Access::read).load(id);
  EXPECT_EQ(error_of([&] { (void)to_json(run); }), "what was recorded as JSON is nested deeper than 64");
}

TEST_F(LedgerTest, PlacesThatCannotBeWrittenAreNamed) {
  path_ = "/proc/no-such-folder/ledger.sqlite";
  EXPECT_EQ(opening_error(),
            "ledger /proc/no-such-folder/ledger.sqlite cannot be opened (unable to open database file: No such file or "
            "directory): name a file that can be written with --ledger or THRESHER_LEDGER");
}

TEST_F(LedgerTest, WhatIsNotThereIsNamed) {
  EXPECT_EQ(error_of([&] { const Ledger ledger(path_, Ledger::Access::read); }),
            "ledger " + path_.string() + ": there is no such file; a tournament makes one");
  Ledger ledger(path_, Ledger::Access::write);
  EXPECT_EQ(error_of([&] { (void)ledger.load(3); }), "ledger " + path_.string() + " holds no runs yet");
  (void)ledger.begin(sample_run());
  (void)ledger.begin(sample_run());
  EXPECT_EQ(error_of([&] { (void)ledger.load(3); }), "ledger " + path_.string() + " holds no run 3, only 1, 2");
}

TEST(DefaultLedger, FollowsTheEnvironment) {
  ::setenv("THRESHER_LEDGER", "/somewhere/l.sqlite", 1);
  EXPECT_EQ(default_ledger(), "/somewhere/l.sqlite");
  ::unsetenv("THRESHER_LEDGER");
  ::setenv("XDG_STATE_HOME", "/state", 1);
  EXPECT_EQ(default_ledger(), "/state/thresher/ledger.sqlite");
  ::unsetenv("XDG_STATE_HOME");
  const std::string home = std::getenv("HOME") == nullptr ? "" : std::getenv("HOME");
  ::setenv("HOME", "/home/me", 1);
  EXPECT_EQ(default_ledger(), "/home/me/.local/state/thresher/ledger.sqlite");
  ::setenv("HOME", "", 1);
  EXPECT_EQ(default_ledger(), "") << "not the working folder";
  ::unsetenv("HOME");
  EXPECT_EQ(default_ledger(), "");
  ::setenv("HOME", home.c_str(), 1);
}

}  // namespace
}  // namespace thresher::arena
