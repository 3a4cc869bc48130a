#pragma once
/// Cheats that know the arena's sources, one file each under cheats/, by what they count on. The first line of a file says
/// where it fails and with which words: "// fails at GATE|GATE: regular expression", or "// rejected: regular expression".
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <sstream>

#include "arena/user_kernels/user_kernel_tournament.hpp"
#include "support/naive_kernel.hpp"

namespace thresher::arena {

/// What cheats count on: folders.
inline constexpr const char* classes_of_cheats[] = {"judges_itself", "timed_outputs", "told_apart",
                                                    "known_beforehand", "outlives", "side_effects",
                                                    "other_source", "verdict_rules"};

class PlantedCheats : public OwnTournament, public ::testing::WithParamInterface<const char*> {
 protected:
  struct Cheat {
    std::string name;
    std::string gates;  ///< where it may fail, or "rejected"
    std::string words;  ///< a regular expression
    Pitch pitch;
  };

  /// The files of a folder beside this one that end in `extension`, copied to where they may include their headers.
  std::vector<Cheat> cheats(const std::string& extension, const std::string& kernel_table,
                            const std::string& baseline) {
    const std::filesystem::path all = std::filesystem::path(THRESHER_SOURCE_DIR) / "tests/arena/user_kernels/cheats";
    for (const std::filesystem::path& header : files_of(all, ".h")) {
      std::filesystem::copy_file(header, folder_.path() / header.filename());
    }
    std::ofstream(folder_.path() / "naive_kernel.h") << naive_kernel();
    std::vector<Cheat> found;
    for (const std::filesystem::path& file : files_of(all / GetParam(), extension)) {
      const std::string source = slurp(file);
      const std::string name = file.stem().string();
      const auto [gates, words] = expectation_of(source);
      found.push_back({name, gates, words, pitch_of(name, file.filename().string(), source, kernel_table, baseline)});
    }
    EXPECT_GE(found.size(), 2U);
    return found;
  }

  static std::vector<Pitch> pitches_of(const std::vector<Cheat>& cheats) {
    std::vector<Pitch> pitches;
    for (const Cheat& cheat : cheats) {
      pitches.push_back(cheat.pitch);
    }
    return pitches;
  }

  static void expect_caught(const std::vector<Cheat>& cheats, const TournamentResult& result) {
    for (const Cheat& cheat : cheats) {
      const Entry& found = entry(result, cheat.name);
      const std::string verdict = plain_verdict(found);
      const std::string gate = verdict.starts_with("failed at ") ? verdict.substr(10) : verdict;
      EXPECT_NE(("|" + cheat.gates + "|").find("|" + gate + "|"), std::string::npos)
          << cheat.name << " " << verdict << ": " << found.sentence;
      EXPECT_TRUE(std::regex_search(found.sentence, std::regex(cheat.words)))
          << cheat.name << " " << verdict << ": " << found.sentence;
      std::printf("%s/%s: %s: %s\n", GetParam(), cheat.name.c_str(), verdict.c_str(), found.sentence.c_str());
    }
  }

 private:
  static std::vector<std::filesystem::path> files_of(const std::filesystem::path& folder, const std::string& extension) {
    std::vector<std::filesystem::path> files;
    for (const std::filesystem::directory_entry& file : std::filesystem::directory_iterator(folder)) {
      if (file.path().extension() == extension) {
        files.push_back(file.path());
      }
    }
    std::sort(files.begin(), files.end());
    return files;
  }

  static std::pair<std::string, std::string> expectation_of(const std::string& source) {
    static const std::regex line(R"(^// (?:fails at ([a-z|-]+)|(rejected)): (.+))");
    const std::string first = source.substr(0, source.find('\n'));
    std::smatch found;
    if (!std::regex_match(first, found, line)) {
      throw std::runtime_error("a cheat without an expectation: " + first);
    }
    return {found[1].matched ? found[1].str() : found[2].str(), found[3].str()};
  }
};

inline std::string name_of_class(const ::testing::TestParamInfo<const char*>& tested) { return tested.param; }

}  // namespace thresher::arena
