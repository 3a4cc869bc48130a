// A strategy is a file and a line, for the command too: two that no product has are registered here, and every
// subcommand that speaks of strategies finds them.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/entry.hpp"
#include "strategies/gemm/registry.hpp"
#include "support/scratch_folder.hpp"
#include "support/toy_strategies.hpp"

namespace thresher::cli {
namespace {

using strategies::gemm::Product;

constexpr const char* suite = R"(title = "Tiny"
operation = "dual_gemm"
distributions = ["contest"]
[[problem]]
m = 8
n = 64
k = 64
a = "bf16"
b = "bf16"
out = "fp32"
)";

constexpr const char* pitch = R"(title = "The definition is fast enough"
[contestant]
operation = "dual_gemm"
strategy = "toy"
[baseline]
strategy = "two_pass"
[claim]
speedup = [0.001, 0.9]
confidence = 0.9
reason = "it is not"
)";

constexpr const char* gpu_pitch = R"(title = "A thread for each output"
[contestant]
operation = "dual_gemm"
strategy = "toy"
knobs = { threads = 32 }
[baseline]
strategy = "pingpong"
[claim]
speedup = [0.001, 0.9]
confidence = 0.9
reason = "it uses no matrix unit"
)";

std::string slurp(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

class ToyStrategies : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    strategies::gemm::register_strategy(test::toy_gpu_strategy(), {Product::dual_gemm});
    strategies::gemm::register_strategy(test::toy_cpu_strategy(), {Product::dual_gemm});
  }

  ToyStrategies() {
    std::ofstream(file("tiny.toml")) << suite;
    std::ofstream(file("gpu-tiny.toml")) << std::string(suite).replace(std::string(suite).find("fp32"), 4, "bf16");
    std::ofstream(file("pitch.toml")) << pitch;
    std::ofstream(file("gpu.toml")) << gpu_pitch;
  }

  [[nodiscard]] std::string file(const std::string& name) const { return (folder_.path() / name).string(); }

  /// The exit status; what was said is in `out` and `err`.
  int run(const std::vector<std::string>& words) {
    std::vector<const char*> argv{"thresher"};
    for (const std::string& word : words) {
      argv.push_back(word.c_str());
    }
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const int status = cli::run(static_cast<int>(argv.size()), argv.data());
    std::fflush(stdout);
    out_ = ::testing::internal::GetCapturedStdout();
    err_ = ::testing::internal::GetCapturedStderr();
    return status;
  }
  [[nodiscard]] bool said(const std::string& text) const { return out_.find(text) != std::string::npos; }

  ScratchFolder folder_;
  std::string out_;
  std::string err_;
};

TEST_F(ToyStrategies, ArePlannedWithTheirTime) {
  EXPECT_EQ(run({"plan", "8x64x64", "--a", "bf16", "--b", "bf16", "--out", "bf16", "--device", "H200", "--strategy",
                 "toy", "--knobs", "threads=32"}),
            0)
      << err_;
  EXPECT_TRUE(said(" us  toy threads=32")) << out_;
}

TEST_F(ToyStrategies, AreAmongTheKnobs) {
  EXPECT_EQ(run({"plan", "--help-knobs"}), 0) << err_;
  EXPECT_TRUE(said("\ntoy: a thread for each output\n")) << out_;
  EXPECT_TRUE(said("threads              outputs of a block: 32, 64")) << out_;
}

TEST_F(ToyStrategies, RunInTheEmulator) {
  EXPECT_EQ(
      run({"emulate", "dual_gemm", "--strategy", "toy", "--knobs", "threads=32", "--a", "bf16", "--b",         "bf16",
           "--out",   "bf16",      "--m",        "3",   "--n",     "40",         "--k", "16",   "--schedules", "4"}),
      0)
      << err_;
  EXPECT_TRUE(said("clean in 4 schedules")) << out_;
}

TEST_F(ToyStrategies, AreJudgedByThePanel) {
  EXPECT_EQ(run({"judge", file("gpu.toml"), "--suite", file("gpu-tiny.toml"), "--device", "H200", "--json"}), 0)
      << err_;
  const nlohmann::json opinions = nlohmann::json::parse(out_);
  ASSERT_EQ(opinions.size(), 1U);
  EXPECT_TRUE(opinions[0].at("predicted").is_number()) << out_;
  EXPECT_LT(opinions[0].at("predicted").get<double>(), 1);
}

TEST_F(ToyStrategies, PassThroughATournamentIntoTheReport) {
  EXPECT_NE(run({"tournament", file("tiny.toml"), "--device", "cpu", "--seconds", "0.1", "--seed", "7", "--pitch",
                 file("pitch.toml"), "--ledger", file("ledger.sqlite"), "--json", file("run.json"), "--report",
                 file("report")}),
            2)
      << err_;
  EXPECT_TRUE(said("dual_gemm/toy")) << out_;
  const nlohmann::json run_json = nlohmann::json::parse(slurp(file("run.json")));
  std::map<std::string, std::string> outcomes;
  for (const nlohmann::json& entry : run_json.at("entries")) {
    if (entry.at("contestant") == "dual_gemm/toy") {
      for (const nlohmann::json& gate : entry.at("gates")) {
        outcomes[gate.at("gate")] = gate.at("outcome");
      }
    }
  }
  for (const char* const gate : {"feasible", "compiles", "correct"}) {
    EXPECT_EQ(outcomes[gate], "passed") << gate;
  }
  for (const char* const gate : {"audited", "race-free"}) {  // which speak of a GPU's machine code
    EXPECT_EQ(outcomes[gate], "not judged") << gate;
  }
  EXPECT_TRUE(outcomes.contains("honest") && outcomes.contains("timed") && outcomes.contains("verdict"));
  EXPECT_NE(slurp(file("report/report.html")).find("dual_gemm/toy"), std::string::npos);
  EXPECT_EQ(run({"ledger", "show", "--ledger", file("ledger.sqlite")}), 0) << err_;
  EXPECT_TRUE(said("dual_gemm/toy")) << out_;
}

}  // namespace
}  // namespace thresher::cli
