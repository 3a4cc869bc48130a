// The plan of the house (docs/architecture.md), held against the includes.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <string_view>
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
      {"strategies", {"pipeline", "cpu"}},
      {"cpu", {"formats", "reference"}},
      {"planner", {"strategies"}},
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

/// The rooms of the arena from the lowest to the highest (docs/architecture.md): a room includes those of the rows
/// above its own, and never one of its own row. A file of src/arena itself is a room of its own.
const std::vector<std::vector<std::string>> arena_rooms = {
    {"random", "text_file", "progress", "match_time", "config"},  // nothing of the arena
    {"timing"},                                                   // clocks, statistics, what is timed
    {"rig"},                                                      // this machine: memory, clock, ceilings
    {"data"},                                                     // tensors on the host and on the device
    {"results"},                                                  // what gates, ledger and report say of a contestant
    {"ledger", "audit"},
    {"operation"},               // what an operation is
    {"emulation"},               // kernels in the emulator
    {"attention", "dual_gemm"},  // each operation, in its own folder
    {"grouped_gemm"},            // groups of dual GEMMs, or of one product, whose data and judge they share
    {"moe_layer"},               // layers, whose products those are
    {"operations"},              // the list of them
    {"suites"},                  // problems, read from files
    {"contestants"},             // who competes
    {"pitches", "honesty"},      // who claims what; experiments
    {"gates", "profile"},        // what a contestant must pass
    {"user_kernels"},            // kernels from outside, in a process of their own
    {"panel"},                   // what a pitch is worth
    {"predictions"},             // what is foreseen, and how right it was
    {"tournament", "report"},
};

/// The row of a room; the test fails for one that is in none.
std::size_t row_of(const std::string& room) {
  for (std::size_t row = 0; row < arena_rooms.size(); ++row) {
    if (std::find(arena_rooms[row].begin(), arena_rooms[row].end(), room) != arena_rooms[row].end()) {
      return row;
    }
  }
  ADD_FAILURE() << "src/arena/" << room << " is not in the order of the arena's rooms";
  return 0;
}

/// "gates" of "gates/match.hpp", "random" of "random.hpp".
std::string room_of(const std::string& path) { return path.substr(0, path.find_first_of("/.")); }

/// The rooms of src/arena/user_kernels/ in the same way; its own files are the contestants, above all of them. The two
/// ends of a line stand in one row: neither knows anything of the other.
const std::vector<std::vector<std::string>> user_kernel_rooms = {
    {"compile", "line"},    // sources on their way to code; what is said on the line to a kernel's process
    {"process", "served"},  // the judge's end; the process's
};

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
        if (other != "thresher" && other != "embedded") {  // embedded: generated by thresher_embed
          EXPECT_TRUE(allowed.at(layer).contains(other)) << file << " includes " << other;
        }
      }
    }
  }
}

TEST(House, EveryRoomOfTheArenaIncludesOnlyWhatLiesBelowIt) {
  const std::regex include("#include \"arena/([^\"]+)\"");
  for (const fs::path& file : source_files(source_root / "arena")) {
    const std::string room = room_of(fs::relative(file, source_root / "arena").string());
    const std::size_t row = row_of(room);
    const std::string text = read(file);
    for (std::sregex_iterator match(text.begin(), text.end(), include), end; match != end; ++match) {
      const std::string other = room_of((*match)[1]);
      EXPECT_TRUE(other == room || row_of(other) < row) << file << " includes " << (*match)[1];
    }
  }
}

TEST(House, EveryRoomOfUsersKernelsIncludesOnlyWhatLiesBelowIt) {
  const auto row = [](const std::string& path) {
    const std::string room = path.find('/') == std::string::npos ? "" : room_of(path);
    const auto holds = [&](const std::vector<std::string>& rooms) {
      return std::find(rooms.begin(), rooms.end(), room) != rooms.end();
    };
    const auto found = std::find_if(user_kernel_rooms.begin(), user_kernel_rooms.end(), holds);
    EXPECT_TRUE(room.empty() || found != user_kernel_rooms.end()) << room << " is not in the order of the rooms";
    return found - user_kernel_rooms.begin();
  };
  const fs::path folder = source_root / "arena/user_kernels";
  const std::regex include("#include \"arena/user_kernels/([^\"]+)\"");
  for (const fs::path& file : source_files(folder)) {
    const std::string path = fs::relative(file, folder).string();
    const std::string text = read(file);
    for (std::sregex_iterator match(text.begin(), text.end(), include), end; match != end; ++match) {
      const std::string other = (*match)[1];
      EXPECT_TRUE(fs::path(other).parent_path() == fs::path(path).parent_path() || row(other) < row(path))
          << file << " includes " << other;
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
  const fs::path strategies = source_root / "strategies";
  if (!fs::exists(strategies)) {
    GTEST_SKIP() << "there are no kernels yet";
  }
  const std::regex barrier("\\bBarrier\\b|expect_bytes|\\bmbarrier\\b");
  for (const fs::path& file : source_files(strategies)) {
    EXPECT_FALSE(std::regex_search(read(file), barrier)) << file;
  }
}

/// Operations and strategies by name, as their registries have them.
constexpr const char* names =
    "dual_gemm|attention|packed|interleaved|sequential|pingpong|tcgen05|two_pass|pipelined|split|stream_k|mixed|simple|"
    "rows|rows_shared|rows_coalesced|blockwise|planned|grouped_dual_gemm|grouped_gemm|by_expert|moe_layer|gated_mlp";

/// Folders that may know the names of one operation and its strategies: its own.
bool is_an_operations_own(const std::string& file) {
  return std::regex_search(file, std::regex("^(strategies|arena)/(dual_gemm|attention|grouped_gemm|moe_layer)/"));
}

// Whoever wants to know something of an operation or a strategy asks the object, and never compares its name.
TEST(House, NobodyComparesTheNameOfAnOperationOrOfAStrategy) {
  const std::string quoted = "\"(" + std::string(names) + ")\"";
  const std::regex compared("[!=]=\\s*" + quoted + "|" + quoted + "\\s*[!=]=|starts_with\\(" + quoted + "\\)");
  for (const fs::path& path : source_files(source_root)) {
    const std::string file = fs::relative(path, source_root).string();
    if (!is_an_operations_own(file)) {
      const std::string text = read(path);
      std::smatch match;
      EXPECT_FALSE(std::regex_search(text, match, compared)) << file << " has " << match.str();
    }
  }
}

/// Every test file that a list names, as a path.
std::set<fs::path> listed_tests(const fs::path& tests) {
  const std::regex name("[A-Za-z0-9_./-]+_test\\.cpp");
  std::set<fs::path> listed;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(tests)) {
    if (entry.path().filename() == "CMakeLists.txt") {
      const std::string text = read(entry.path());
      for (std::sregex_iterator match(text.begin(), text.end(), name), end; match != end; ++match) {
        listed.insert((entry.path().parent_path() / match->str()).lexically_normal());
      }
    }
  }
  return listed;
}

// A test file that no list names is never built, and nobody notices; several have the same name in other folders.
TEST(House, EveryTestIsBuilt) {
  const fs::path tests = fs::path(THRESHER_SOURCE_DIR) / "tests";
  const std::set<fs::path> listed = listed_tests(tests);
  for (const fs::path& file : source_files(tests)) {
    if (file.filename().string().ends_with("_test.cpp")) {
      EXPECT_TRUE(listed.contains(file)) << file << " is in no CMakeLists.txt";
    }
  }
}

/// The sources that a line of a list names: several where the list is not one a line.
std::vector<std::string> sources_of(const std::string& line) {
  const std::regex source("(^|[\\s(])([^\\s()\"#]+\\.(cpp|c|hpp|h|toml|py))(?=[\\s)]|$)");
  std::vector<std::string> sources;
  for (std::sregex_iterator match(line.begin(), line.end(), source), end; match != end; ++match) {
    sources.push_back((*match)[2]);
  }
  return sources;
}

void expect_one_source_a_line(const fs::path& list) {
  std::ifstream stream(list);
  std::string before;
  for (std::string line; std::getline(stream, line);) {
    const std::vector<std::string> sources = sources_of(line.substr(0, line.find('#')));
    EXPECT_LE(sources.size(), 1U) << list << ": " << line;
    const bool listed = sources.size() == 1 && line.find_first_not_of(' ') == line.find(sources.front());
    if (listed) {
      EXPECT_LT(before, sources.front()) << list << " is not sorted";
    }
    before = listed ? sources.front() : "";
  }
}

// Changes that each add a source then rarely touch the same line.
TEST(House, ListsNameOneSourceALineInOrder) {
  for (const char* folder : {"src", "tests", "python", "fuzz", "bench"}) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(fs::path(THRESHER_SOURCE_DIR) / folder)) {
      if (entry.path().filename() == "CMakeLists.txt") {
        expect_one_source_a_line(entry.path());
      }
    }
  }
}

// The same of the tests of the Python package.
TEST(House, EveryPythonTestIsRun) {
  const fs::path root(THRESHER_SOURCE_DIR);
  const std::string lists = read(root / "tests" / "python" / "CMakeLists.txt");
  for (const fs::directory_entry& entry : fs::directory_iterator(root / "python" / "tests")) {
    const std::string name = entry.path().stem().string();
    if (name.starts_with("test_") && entry.path().extension() == ".py") {
      const std::regex listed("\\b" + name.substr(std::string_view("test_").size()) + "\\b");
      EXPECT_TRUE(std::regex_search(lists, listed)) << entry.path() << " is in no list";
    }
  }
}

// What users include stands on nothing of src/, which is not installed.
TEST(House, PublicHeadersIncludeOnlyPublicOnes) {
  const fs::path root = fs::path(THRESHER_SOURCE_DIR) / "include";
  const std::regex include("#include \"([^\"]+)\"");
  for (const fs::path& file : source_files(root)) {
    const std::string text = read(file);
    for (std::sregex_iterator match(text.begin(), text.end(), include), end; match != end; ++match) {
      EXPECT_TRUE(fs::exists(root / (*match)[1].str())) << file << " includes " << (*match)[1];
    }
  }
}

}  // namespace
