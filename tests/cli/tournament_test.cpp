// `thresher tournament`, `ledger` and `report` as a user meets them.
#include <algorithm>
#include <set>

#include "cli/tournament_folder.hpp"

namespace thresher::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class TournamentCommand : public TournamentFolder {
 protected:
  /// A short tournament on the ledger of the test. What is expected of it holds whatever is measured.
  Outcome tournament(const std::string& more) const {
    return run("tournament --ledger ledger.sqlite --seconds 0.2 --seed 7 --device cpu " + more);
  }

  /// Exit status 2, one sentence on standard error, nothing on standard output and no file but those there before.
  void expect_refused(const std::string& arguments, const std::string& sentence) const {
    const auto files = [&] {
      std::vector<std::string> names;
      for (const auto& entry : fs::recursive_directory_iterator(folder())) {
        names.push_back(entry.path().string());
      }
      std::sort(names.begin(), names.end());
      return names;
    };
    write("stdout.txt", "");
    write("stderr.txt", "");
    const auto before = files();
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, 2) << arguments;
    EXPECT_EQ(outcome.out, "") << arguments;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_NE(outcome.err.find(sentence), std::string::npos) << outcome.err;
    EXPECT_EQ(files(), before) << arguments;
  }
};

TEST_F(TournamentCommand, TuningWithoutADeviceTableIsRefusedBeforeAnythingRuns) {
  expect_refused("tournament tiny.toml --ledger ledger.sqlite --device cpu --tune",
                 "--tune: there is nothing to choose");
}

// Whatever there is for the card: what needs no run is judged, the rest is not.
TEST_F(TournamentCommand, OnACardThatIsNotHereNothingIsRun) {
  const Outcome outcome =
      run("tournament tiny.toml --device-table b200 --ledger ledger.sqlite --seed 7 --json all.json");
  ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  const json all = json::parse(slurp(folder() / "all.json"));
  EXPECT_EQ(all["device"], "table:B200");
  ASSERT_FALSE(all["entries"].empty());
  for (const json& entry : all["entries"]) {
    EXPECT_EQ(entry["verdict"], "not judged") << entry["contestant"];
    for (const json& gate : entry["gates"]) {
      const std::string name = gate["gate"];
      if (name == "feasible") {
        EXPECT_EQ(gate["outcome"], "passed") << gate["sentence"];
      } else if (name != "compiles" && name != "audited" && name != "race-free") {
        EXPECT_EQ(gate["outcome"], "not judged") << name;
        EXPECT_EQ(gate["sentence"],
                  "nothing of it was run: B200 (sm_100a) is a card of the planner's table and not this machine's");
      }
    }
  }
}

TEST_F(TournamentCommand, PrintsStandingsAndWritesWhatItIsAskedFor) {
  const Outcome outcome = tournament("tiny.toml --json all.json --report out/report");
  ASSERT_TRUE(was_held(outcome)) << outcome.err;
  EXPECT_NE(outcome.out.find("dual_gemm/interleaved"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("dual_gemm/two_pass"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("report: out/report/report.html"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.err.find("seed 7"), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find('\x1b'), std::string::npos) << "a pipe gets plain lines";

  const json all = json::parse(slurp(folder() / "all.json"));
  EXPECT_EQ(all, json::parse(slurp(folder() / "out/report/report.json")));
  EXPECT_EQ(all["seed"], 7);
  ASSERT_EQ(all["entries"].size(), 2U);
  for (const json& entry : all["entries"]) {
    EXPECT_EQ(entry["gates"].size(), 8U);
    EXPECT_EQ(entry["measurements"].size(), was_timed(entry) ? 4U : 0U);
    EXPECT_FALSE(entry["context"]["source_hash"].get<std::string>().empty());
    EXPECT_TRUE(entry["context"]["machine"].contains("cpu"));
    EXPECT_TRUE(entry["context"]["toolchain"].contains("compiler"));
    EXPECT_EQ(entry["clocks"]["clock"], "wall clock");
  }
  EXPECT_EQ(exported()[0]["entries"], all["entries"]);
}

TEST_F(TournamentCommand, AttentionCompetesToo) {
  write("small.toml", R"(title = "Small attention"
operation = "attention"
cache = "warm"
distributions = ["normal", "specials"]
[[problem]]
heads = 4
kv_heads = 2
queries = 70
keys = 90
head_dim = 64
format = "bf16"
causal = [false, true]
lse = true
)");
  const Outcome outcome = tournament("small.toml --json all.json --report r");
  ASSERT_TRUE(was_held(outcome)) << outcome.err << outcome.out;
  EXPECT_NE(outcome.out.find("attention/blockwise"), std::string::npos) << outcome.out;
  const json all = json::parse(slurp(folder() / "all.json"));
  ASSERT_EQ(all["entries"].size(), 1U);
  const json& entry = all["entries"][0];
  for (const json& gate : entry["gates"]) {
    EXPECT_TRUE(gate["outcome"] != "failed" || depends_on_the_clock(gate)) << gate;
    EXPECT_TRUE(gate["gate"] != "correct" || gate["outcome"] == "passed") << gate;
  }
  std::set<std::string> timed;
  for (const json& measurement : entry["measurements"]) {
    if (measurement.contains("rounds")) {
      timed.insert(measurement["mode"]);
      EXPECT_GT(measurement["floor_us"], 0);
      EXPECT_GT(measurement["contestant_us"]["value"], 0);
    }
  }
  EXPECT_EQ(timed.contains("warm burst"), was_timed(entry));
  EXPECT_FALSE(timed.contains("cold burst"));
  const std::string report = slurp(folder() / "r/report.html");
  EXPECT_NE(report.find("1x4/2x70:90x64 bf16 causal lse"), std::string::npos);
}

TEST_F(TournamentCommand, APitchIsJudgedAgainstItsBaseline) {
  const Outcome outcome = tournament("untimed.toml --pitch pitch.toml --json all.json");
  ASSERT_TRUE(was_held(outcome)) << outcome.err;
  const json all = json::parse(slurp(folder() / "all.json"));
  ASSERT_EQ(all["entries"].size(), 2U);
  EXPECT_EQ(all["entries"][0]["contestant"], "dual_gemm/two_pass");
  EXPECT_EQ(all["entries"][1]["pitch"]["claim"]["speedup_high"], 1.5);
  EXPECT_EQ(all["entries"][1]["baseline"], "dual_gemm/two_pass");
}

TEST_F(TournamentCommand, TheLedgerIsListedShownExportedAndReported) {
  ASSERT_TRUE(was_held(tournament("untimed.toml")));
  ASSERT_TRUE(was_held(tournament("untimed.toml --pitch pitch.toml")));
  const Outcome list = run("ledger list --ledger ledger.sqlite");
  EXPECT_EQ(std::count(list.out.begin(), list.out.end(), '\n'), 3) << list.out;
  EXPECT_NE(list.out.find("cpu     untimed\n"), std::string::npos) << list.out;
  const Outcome show = run("ledger show 1 --ledger ledger.sqlite");
  EXPECT_NE(show.out.find("run 1, started"), std::string::npos) << show.out;
  EXPECT_NE(show.out.find("honest     passed"), std::string::npos) << show.out;
  EXPECT_EQ(exported().size(), 2U);
  ASSERT_EQ(run("ledger export 2 --ledger ledger.sqlite --json two.json").status, 0);
  EXPECT_EQ(json::parse(slurp(folder() / "two.json"))["run"], 2);
  ASSERT_EQ(run("report 2 --ledger ledger.sqlite --report r").status, 0);
  EXPECT_EQ(json::parse(slurp(folder() / "r/report.json")), json::parse(slurp(folder() / "two.json")));
}

TEST_F(TournamentCommand, TheLedgerTellsWhetherItWasChangedAndHowGoodPredictionsWere) {
  ASSERT_TRUE(was_held(tournament("untimed.toml")));
  const Outcome verified = run("ledger verify --ledger ledger.sqlite");
  EXPECT_EQ(verified.status, 0) << verified.err;
  EXPECT_NE(verified.out.find("links, all as they were written; head "), std::string::npos) << verified.out;
  const Outcome predictions = run("ledger predictions --ledger ledger.sqlite");
  EXPECT_EQ(predictions.status, 0) << predictions.err;
  EXPECT_NE(predictions.out.find("no prediction has been measured yet"), std::string::npos) << predictions.out;
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which take more addresses than the limit leaves
TEST_F(TournamentCommand, AGateThatFailsIsExitStatusOne) {
  std::string huge = tiny_suite;
  huge.replace(huge.find("n = 64"), 6, "n = 65536").replace(huge.find("k = 64"), 6, "k = 65536");
  write("huge.toml", huge);
  const std::string command = "cd '" + folder().string() +
                              "' && ulimit -v 4000000 && '" THRESHER_BINARY
                              "' tournament huge.toml --device cpu --ledger ledger.sqlite >stdout.txt 2>stderr.txt";
  const int raw = std::system(command.c_str());
  EXPECT_EQ(WEXITSTATUS(raw), 1) << slurp(folder() / "stderr.txt");
  const std::string out = slurp(folder() / "stdout.txt");
  EXPECT_NE(out.find("failed at feasible"), std::string::npos) << out;
  EXPECT_NE(out.find("MiB are available"), std::string::npos) << out;
}
#endif

TEST_F(TournamentCommand, BadInputIsOneSentenceAndNothingElse) {
  expect_refused("tournament orgin --ledger l.sqlite", "suite orgin: it is none of the built-in suites");
  write("bad.toml", std::string(tiny_suite) + "warps = 4\n");
  expect_refused("tournament bad.toml --ledger l.sqlite", "bad.toml:11: unknown key `warps` in [problem]");
  std::string text = pitch;
  write("claim.toml", text.replace(text.find("[1.1, 1.5]"), 10, "\"fast\""));
  expect_refused("tournament tiny.toml --pitch claim.toml --ledger l.sqlite",
                 "claim.toml:8: `speedup` in [claim] must be a finite number");
  write("gate.toml", std::string(pitch) + "[accept]\ngates = [\"pretty\"]\n");
  expect_refused("tournament tiny.toml --pitch gate.toml --ledger l.sqlite",
                 "gate.toml:12: `gates` in [accept] names \"pretty\"");
  text = pitch;
  write("strategy.toml", text.replace(text.find("interleaved"), 11, "quantum"));
  expect_refused("tournament tiny.toml --pitch strategy.toml --ledger l.sqlite --device cpu",
                 "contestant dual_gemm/quantum: there is no such strategy");
  expect_refused("tournament tiny.toml --pitch none.toml --ledger l.sqlite",
                 "pitch none.toml: the file cannot be read: No such file or directory");
  expect_refused("tournament tiny.toml --device toaster --ledger l.sqlite", "there is no device 'toaster'");
  expect_refused("tournament tiny.toml --seconds -1 --ledger l.sqlite", "--seconds");
  expect_refused("tournament tiny.toml --seed many --ledger l.sqlite", "--seed");
  expect_refused("tournament tiny.toml --seconds nan --ledger l.sqlite", "--seconds: nan is not a time");
  expect_refused("tournament tiny.toml --seconds inf --ledger l.sqlite", "--seconds: inf is not a time");
  expect_refused("tournament tiny.toml --seed -1 --ledger l.sqlite", "--seed: -1 is not a whole number");
  expect_refused("tournament tiny.toml tiny.toml --ledger l.sqlite", "suite tiny is named twice");
  expect_refused("tournament tiny.toml --json tiny.toml --ledger l.sqlite", "--json tiny.toml is a file");
  expect_refused("tournament tiny.toml --device cuda --ledger l.sqlite", "there is no device");
  expect_refused("tournament", "SUITE");
  expect_refused("ledger list --ledger none.sqlite", "ledger none.sqlite: there is no such file");
  expect_refused("report --ledger none.sqlite", "ledger none.sqlite: there is no such file");
}

TEST_F(TournamentCommand, OutputsThatCannotBeWrittenAreFoundBeforeAnythingRuns) {
  write("file", "");
  expect_refused("tournament tiny.toml --device cpu --ledger l.sqlite --report file",
                 "the report folder file cannot be made");
  expect_refused("tournament tiny.toml --device cpu --ledger l.sqlite --json none/all.json",
                 "the JSON file none/all.json cannot be written");
  expect_refused("tournament tiny.toml --device cpu --ledger file/l.sqlite", "ledger file/l.sqlite cannot be opened");
}

TEST_F(TournamentCommand, ForeignAndDamagedLedgersAreLeftAsTheyAre) {
  write("ledger.sqlite", std::string(3000, 'z'));
  expect_refused("tournament tiny.toml --device cpu --ledger ledger.sqlite", "is damaged or no ledger");
  EXPECT_EQ(slurp(folder() / "ledger.sqlite"), std::string(3000, 'z'));
}

}  // namespace
}  // namespace thresher::testing
