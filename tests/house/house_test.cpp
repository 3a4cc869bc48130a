// The plan of the house (docs/architecture.md), held against the includes.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

using Layers = std::map<std::string, std::set<std::string>>;

/// What each layer may include: itself, and everything reachable below it.
Layers allowed_layers() {
  const Layers direct = {
      {"core", {}},
      {"formats", {"core"}},
      {"reference", {"formats"}},
      {"machine", {"formats", "reference"}},
      {"pipeline", {"machine"}},
      {"kernels", {"pipeline"}},
      {"cpu", {"pipeline"}},
      {"planner", {"kernels", "cpu"}},
      {"runtime", {"core"}},
      {"ops", {"planner", "runtime"}},
      {"arena", {"ops", "runtime"}},
      {"cli", {"arena"}},
  };
  Layers all;
  for (const auto& entry : direct) {
    std::vector<std::string> open{entry.first};
    while (!open.empty()) {
      const std::string layer = open.back();
      open.pop_back();
      if (all[entry.first].insert(layer).second) {
        open.insert(open.end(), direct.at(layer).begin(), direct.at(layer).end());
      }
    }
  }
  return all;
}

std::vector<fs::path> source_files(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    const std::string extension = entry.path().extension().string();
    if (extension == ".cpp" || extension == ".hpp" || extension == ".h" || extension == ".cuh") {
      files.push_back(entry.path());
    }
  }
  return files;
}

std::string read(const fs::path& path) {
  std::ifstream stream(path);
  return {std::istreambuf_iterator<char>(stream), {}};
}

const fs::path source_root = fs::path(THRESHER_SOURCE_DIR) / "src";

TEST(House, EveryLayerIncludesOnlyWhatLiesBelowIt) {
  const Layers allowed = allowed_layers();
  const std::regex include("#include \"([a-z_]+)/");
  for (const fs::directory_entry& folder : fs::directory_iterator(source_root)) {
    if (!folder.is_directory()) {
      continue;
    }
    const std::string layer = folder.path().filename().string();
    ASSERT_TRUE(allowed.contains(layer)) << "src/" << layer << " is not in the plan of the house";
    for (const fs::path& file : source_files(folder.path())) {
      const std::string text = read(file);
      for (std::sregex_iterator match(text.begin(), text.end(), include), end; match != end; ++match) {
        const std::string other = (*match)[1];
        if (other != "thresher") {
          EXPECT_TRUE(allowed.at(layer).contains(other)) << file << " includes " << other;
        }
      }
    }
  }
}

TEST(House, InlineAssemblyStandsOnlyInThePtxBody) {
  const std::regex assembly("\\basm\\s*(volatile)?\\s*\\(");
  for (const fs::path& file : source_files(source_root)) {
    if (file.string().find("machine/ptx/") == std::string::npos) {
      EXPECT_FALSE(std::regex_search(read(file), assembly)) << file;
    }
  }
}

TEST(House, NoBarrierAppearsInAKernelFolder) {
  const fs::path kernels = source_root / "kernels";
  if (!fs::exists(kernels)) {
    GTEST_SKIP() << "there are no kernels yet";
  }
  const std::regex barrier("\\bBarrier\\b|expect_bytes|\\bmbarrier\\b");
  for (const fs::path& file : source_files(kernels)) {
    EXPECT_FALSE(std::regex_search(read(file), barrier)) << file;
  }
}

}  // namespace
