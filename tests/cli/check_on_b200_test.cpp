// scripts/check_on_b200.sh where there is nothing to check on: one sentence, and nothing is built or left behind.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "cli/command.hpp"

namespace thresher::testing {
namespace {

constexpr const char* needs =
    "scripts/check_on_b200.sh needs a GPU of compute capability 10.0 or 10.3 (a B200 or a GB300) as GPU 0, and here "
    "is ";

/// With an nvidia-smi that prints `gpu`, or fails.
Outcome check(const ScratchFolder& folder, const std::string& gpu, const std::string& arguments = "") {
  const std::filesystem::path smi = folder.path() / "nvidia-smi";
  std::ofstream(smi) << "#!/bin/sh\n" << (gpu.empty() ? "exit 9" : "echo '" + gpu + "'") << "\n";
  std::filesystem::permissions(smi, std::filesystem::perms::owner_all);
  const std::string command = "cd '" + folder.path().string() + "' && PATH='" + folder.path().string() +
                              "':\"$PATH\" '" + THRESHER_SOURCE_DIR "/scripts/check_on_b200.sh' " + arguments +
                              " >stdout.txt 2>stderr.txt";
  const int raw = std::system(command.c_str());
  return {WIFEXITED(raw) ? WEXITSTATUS(raw) : -1, slurp(folder / "stdout.txt"), slurp(folder / "stderr.txt")};
}

TEST(CheckOnB200, SaysInOneSentenceThatThereIsNoSuchCard) {
  const ScratchFolder folder;
  for (const auto& [gpu, words] : {std::pair<std::string, std::string>{"", "none"},
                                   {"NVIDIA H100 80GB HBM3, 9.0", "NVIDIA H100 80GB HBM3, 9.0"},
                                   {"NVIDIA RTX PRO 6000, 12.0", "NVIDIA RTX PRO 6000, 12.0"}}) {
    const Outcome outcome = check(folder, gpu);
    EXPECT_EQ(outcome.status, 2);
    EXPECT_EQ(outcome.err, needs + words + "\n");
    EXPECT_EQ(outcome.out, "");
  }
}

TEST(CheckOnB200, OverwritesNoResults) {
  const ScratchFolder folder;
  std::filesystem::create_directory(folder / "results");
  const std::string results = (folder / "results").string();
  const Outcome outcome = check(folder, "NVIDIA B200, 10.0", "'" + results + "'");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.err, "scripts/check_on_b200.sh: " + results + " exists already: name a folder that does not\n");
}

}  // namespace
}  // namespace thresher::testing
