// The quick start of docs/harness/bring-your-own.md, typed as it stands there.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/command.hpp"

namespace thresher::testing {
namespace {

using nlohmann::json;

/// What the page tells a user without a GPU to type, without the command's name.
std::string documented_arguments() {
  const std::string page = slurp(THRESHER_SOURCE_DIR "/docs/harness/bring-your-own.md");
  const std::string prompt = "$ thresher tournament small.toml --pitch naive-cpu.toml";
  const std::size_t begin = page.find(prompt);
  if (begin == std::string::npos) {
    throw std::runtime_error("docs/harness/bring-your-own.md no longer says " + prompt);
  }
  const std::string line = page.substr(begin, page.find('\n', begin) - begin);
  return line.substr(std::string("$ thresher ").size(), line.find('#') - std::string("$ thresher ").size());
}

TEST(BringYourOwn, TheQuickStartCompilesAndJudgesTheExampleFromItsOwnFolder) {
  const ScratchFolder folder;
  std::filesystem::copy(THRESHER_SOURCE_DIR "/examples/bring-your-own", folder.path());
  (void)run_thresher(folder.path(), documented_arguments() + " --seconds 0.02 --ledger l.sqlite --json all.json");
  const json all = json::parse(slurp(folder / "all.json"));
  ASSERT_EQ(all["entries"].size(), 2U) << slurp(folder / "stderr.txt");
  const json& naive = all["entries"][1];
  EXPECT_EQ(naive["contestant"], "dual_gemm/naive");
  for (const json& gate : naive["gates"]) {
    if (gate["gate"] == "feasible" || gate["gate"] == "compiles" || gate["gate"] == "correct") {
      EXPECT_EQ(gate["outcome"], "passed") << gate;
    }
  }
}

}  // namespace
}  // namespace thresher::testing
