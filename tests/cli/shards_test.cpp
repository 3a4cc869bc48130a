// `thresher tournament --shard` in processes of their own, and `thresher ledger merge`.
#include <array>

#include "cli/tournament_folder.hpp"

namespace thresher::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class Shards : public TournamentFolder {
 protected:
  static constexpr int count = 3;

  Shards() {
    std::string half = untimed_suite();
    for (const char* format : {"a = \"nvfp4\"", "b = \"nvfp4\""}) {
      half.replace(half.find(format) + 4, 7, "\"fp16\"");
    }
    write("half.toml", half);
  }

  /// Three pairings, and what of them holds whatever is measured.
  static std::string tournament(const std::string& ledger) {
    return "tournament tiny.toml untimed.toml half.toml --device cpu --seconds 0.2 --seed 7 --ledger " + ledger + " ";
  }
  static std::string ledger(int shard) { return "shard" + std::to_string(shard) + ".sqlite"; }
  std::string path(const std::string& name) const { return (folder() / name).string(); }

  /// All shards at once, each in a process of its own.
  void hold_shards() const {
    std::array<pid_t, count> children{};
    for (int shard = 1; shard <= count; ++shard) {
      const pid_t child = ::fork();
      if (child == 0) {
        const std::string own = path("own" + std::to_string(shard));
        fs::create_directory(own);
        const std::string held = "--shard " + std::to_string(shard) + "/" + std::to_string(count);
        const std::string command = "cd '" + path(".") + "' && '" THRESHER_BINARY "' " + tournament(ledger(shard)) +
                                    held + " >'" + own + "/out' 2>'" + own + "/err'";
        const int status = std::system(command.c_str());
        ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 99);
      }
      children[static_cast<std::size_t>(shard - 1)] = child;
    }
    for (int shard = 1; shard <= count; ++shard) {
      int status = -1;
      ::waitpid(children[static_cast<std::size_t>(shard - 1)], &status, 0);
      ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) <= 1) << slurp(said(shard, "err"));
    }
  }
  std::string said(int shard, const std::string& where) const {
    return path("own" + std::to_string(shard) + "/" + where);
  }

  /// What a gate says whatever clock and memory said: how many calls of a timed suite are judged is the clock's doing,
  /// and `feasible` tells of free memory.
  static json lasting_gate(const json& gate) {
    json kept{{"gate", gate["gate"]}};
    if (!depends_on_the_clock(gate)) {
      const std::string sentence = gate["sentence"];
      kept["outcome"] = gate["outcome"];
      kept["sentence"] = gate["gate"] == "feasible" ? "" : sentence.substr(0, sentence.find("; the worst error"));
    }
    return kept;
  }

  /// What an entry is whatever clock and memory said.
  static json lasting(const json& entry) {
    json kept{{"ordinal", entry["ordinal"]},
              {"suite", entry["suite"]},
              {"contestant", entry["contestant"]},
              {"baseline", entry["baseline"]},
              {"source_hash", entry["context"]["source_hash"]}};
    for (const json& gate : entry["gates"]) {
      kept["gates"].push_back(lasting_gate(gate));
    }
    return kept;
  }
};

TEST_F(Shards, MergedTheyAreTheWholeTournament) {
  hold_shards();
  ASSERT_TRUE(was_held(run(tournament("whole.sqlite"))));
  const json whole = exported("whole.sqlite")[0];
  ASSERT_EQ(whole["entries"].size(), 6U);

  const Outcome merged = run("ledger merge --ledger all.sqlite shard2.sqlite shard3.sqlite shard1.sqlite");
  ASSERT_EQ(merged.status, 0) << merged.err;
  EXPECT_TRUE(merged.out.starts_with("run 1 of ledger all.sqlite: 6 contestants, merged from 3 shards\n  shard 1: "))
      << merged.out;
  const json all = exported("all.sqlite")[0];
  EXPECT_EQ(all["seed"], 7);
  ASSERT_EQ(all["entries"].size(), whole["entries"].size());
  for (std::size_t place = 0; place < whole["entries"].size(); ++place) {
    EXPECT_EQ(lasting(all["entries"][place]), lasting(whole["entries"][place]));
  }
  std::size_t held = 0;
  for (int shard = 1; shard <= count; ++shard) {
    const json own = exported(ledger(shard))[0];
    EXPECT_EQ(own["arguments"]["shard"]["number"], shard);
    EXPECT_EQ(own["arguments"]["shard"]["count"], count);
    for (const json& entry : own["entries"]) {
      const json& one = all["entries"][entry["ordinal"].get<std::size_t>()];
      held += one == entry ? 1 : 0;
      EXPECT_FALSE(one["context"]["machine"]["name"].get<std::string>().empty());
    }
  }
  EXPECT_EQ(held, 6U) << "every entry is as its shard wrote it";

  EXPECT_EQ(run("ledger verify --ledger all.sqlite").status, 0);
  const Outcome again = run("ledger merge --ledger all.sqlite shard1.sqlite shard2.sqlite shard3.sqlite");
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_EQ(again.out, "run 1 of ledger all.sqlite holds these shards already: nothing was written\n");
  EXPECT_EQ(exported("all.sqlite").size(), 1U);
  const Outcome shown = run("ledger show --ledger all.sqlite");
  EXPECT_TRUE(shown.out.starts_with("run 1, merged from 3 shards, started ")) << shown.out;
  EXPECT_NE(shown.out.find("dual_gemm/interleaved on half (shard 3, "), std::string::npos) << shown.out;
  EXPECT_NE(run("ledger list --ledger shard2.sqlite").out.find("tiny, untimed, half (shard 2/3)\n"), std::string::npos);
  EXPECT_NE(run("ledger list --ledger all.sqlite").out.find("half (merged from 3 shards)\n"), std::string::npos);
  ASSERT_EQ(run("report --ledger all.sqlite --report r").status, 0);
  EXPECT_EQ(json::parse(slurp(folder() / "r/report.json"))["arguments"]["merged"]["count"], count);
}

TEST_F(Shards, WhatIsMissingIsSaidAndLeftOutOnlyWhenAsked) {
  ASSERT_TRUE(was_held(run(tournament("shard2.sqlite") + "--shard 2/3")));
  const Outcome refused = run("ledger merge --ledger all.sqlite shard2.sqlite");
  EXPECT_EQ(refused.status, 2);
  EXPECT_EQ(refused.err,
            "thresher: shards 1, 3 of 3 are missing: name the ledgers that hold them, or merge the others with "
            "--partial\n");
  EXPECT_FALSE(fs::exists(folder() / "all.sqlite"));
  const Outcome partial = run("ledger merge --ledger all.sqlite shard2.sqlite --partial");
  EXPECT_EQ(partial.status, 0) << partial.err;
  EXPECT_NE(partial.out.find("2 contestants, merged without shards 1, 3 of 3\n"), std::string::npos) << partial.out;
}

TEST_F(Shards, AShardWithoutAMatchIsASuccessThatSaysSo) {
  const Outcome outcome = run("tournament untimed.toml --device cpu --seed 7 --shard 4/4 --ledger ledger.sqlite");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "shard 4/4 has no match: the tournament's 2 are all in other shards\n");
}

/// What examples/sweeps/ calls, doing the same on this machine, one task after another.
constexpr const char* sbatch = R"(#!/bin/bash
for word; do
  case $word in
    --array=1-*) tasks=${word#--array=1-} ;;
    --wrap=*) wrapped=${word#--wrap=} ;;
  esac
done
while [[ $1 == --* ]]; do shift; [ $# -gt 0 ] || break; done
if [ -n "${wrapped:-}" ]; then exec bash -c "$wrapped"; fi
for ((task = 1; task <= tasks; ++task)); do SLURM_ARRAY_TASK_ID=$task bash "$@" >&2; done
echo 17
)";
constexpr const char* ray = R"(
class Task:
    def __init__(self, function): self.function = function
    def remote(self, *words): return self.function(*words)
def init(): pass
def remote(**resources):
    assert resources == {"num_cpus": 2, "num_gpus": 0}
    return Task
def get(results): return results
)";

class SweepExamples : public Shards {
 protected:
  SweepExamples() {
    fs::create_directory(folder() / "bin");
    fs::create_symlink(THRESHER_BINARY, folder() / "bin/thresher");
    write("bin/sbatch", sbatch);
    write("bin/ray.py", ray);
    fs::permissions(folder() / "bin/sbatch", fs::perms::owner_all);
  }

  int example(const std::string& command) const {
    const int raw = std::system(("cd '" + path(".") +
                                 "' && PATH=\"$PWD/bin:$PATH\" PYTHONPATH=\"$PWD/bin\" PYTHONDONTWRITEBYTECODE=1 " +
                                 command + " >out.txt 2>err.txt")
                                    .c_str());
    return WIFEXITED(raw) ? WEXITSTATUS(raw) : -1;
  }

  /// Whether the ledger has the one whole tournament of the suites `untimed` and `half`.
  void expect_whole(const std::string& ledger) const {
    const json runs = exported(ledger);
    ASSERT_EQ(runs.size(), 1U);
    EXPECT_EQ(runs[0]["entries"].size(), 4U);
    EXPECT_EQ(runs[0]["arguments"]["merged"]["shards"].size(), 2U);
    EXPECT_EQ(runs[0]["seed"], 42);
  }
};

TEST_F(SweepExamples, ASlurmArrayHoldsATournament) {
  const std::string suites = "'" + path("untimed.toml") + "' '" + path("half.toml") + "'";
  ASSERT_EQ(
      example("bash " THRESHER_SOURCE_DIR "/examples/sweeps/slurm_array.sh 2 42 sweep " + suites + " --device cpu"), 0)
      << slurp(folder() / "err.txt");
  expect_whole("sweep/all.sqlite");
  EXPECT_TRUE(fs::exists(folder() / "sweep/report/report.html"));
}

TEST_F(SweepExamples, RayTasksHoldATournament) {
  if (std::system("command -v python3 >/dev/null 2>&1") != 0) {
    GTEST_SKIP() << "there is no Python on this machine";
  }
  const std::string suites = "untimed.toml half.toml";
  ASSERT_EQ(example("python3 " THRESHER_SOURCE_DIR
                    "/examples/sweeps/ray_tasks.py --shards 2 --seed 42 --cpus 2 --ledger all.sqlite -- " +
                    suites + " --device cpu"),
            0)
      << slurp(folder() / "err.txt");
  expect_whole("all.sqlite");
}

}  // namespace
}  // namespace thresher::testing
