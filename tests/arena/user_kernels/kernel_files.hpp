#pragma once
/// Kernels that tests bring, one file each: cheats under cheats/, by what they count on, and honest ones under
/// unusual/. A line "// [kernel] …" of a file is what its pitch says in that table.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

#include "arena/user_kernels/user_kernel_tournament.hpp"
#include "support/naive_kernel.hpp"

namespace thresher::arena {

class KernelFiles : public OwnTournament {
 protected:
  struct KernelFile {
    std::string name;
    std::string source;
    Pitch pitch;
  };

  /// The files of `folder`, beside this one, that end in `extension`, copied to where they find their headers.
  std::vector<KernelFile> kernels(const std::string& folder, const std::string& extension, const std::string& table,
                                  const std::string& baseline) {
    const std::filesystem::path here = std::filesystem::path(THRESHER_SOURCE_DIR) / "tests/arena/user_kernels";
    for (const std::filesystem::path& header : files_of(here / "cheats", ".h")) {
      std::filesystem::copy_file(header, folder_.path() / header.filename());
    }
    std::ofstream(folder_.path() / "naive_kernel.h") << naive_kernel();
    std::vector<KernelFile> found;
    for (const std::filesystem::path& file : files_of(here / folder, extension)) {
      const std::string name = file.stem().string();
      const std::string source = slurp(file);
      found.push_back({name, source,
                       pitch_of(name, file.filename().string(), source,
                                table + after(source, "// [kernel] ").value_or(""), baseline)});
    }
    EXPECT_GE(found.size(), 2U) << folder;
    return found;
  }

  static std::vector<Pitch> pitches_of(const std::vector<KernelFile>& kernels) {
    std::vector<Pitch> pitches;
    for (const KernelFile& kernel : kernels) {
      pitches.push_back(kernel.pitch);
    }
    return pitches;
  }

  /// On a machine whose processors others use too nobody is judged by times. The first line of a cheat is "// fails at
  /// GATE|GATE: regular expression", or with a verdict in the place of gates
  /// "// VERDICT|VERDICT: regular expression".
  static void expect_caught(const KernelFile& cheat, const Entry& entry) {
    static const std::regex expectation(R"(// (?:fails at )?([a-z| -]+): (.+))");
    const std::string first = cheat.source.substr(0, cheat.source.find('\n'));
    std::smatch found;
    ASSERT_TRUE(std::regex_match(first, found, expectation)) << cheat.name << ": " << first;
    const std::string gates = "|" + found[1].str() + "|";
    const std::string verdict = plain_verdict(entry);
    const std::string at = verdict.starts_with("failed at ") ? verdict.substr(10) : verdict;
    const bool needs_times = std::regex_search(gates, std::regex(R"(\|(timed|rejected|within noise)\|)"));
    static const std::regex others_are_here("this machine is busy|than alone .* run again|contradict each other");
    if (needs_times && at == "not judged" && std::regex_search(entry.sentence, others_are_here)) {
      return;  // whoever else is at work here; nothing was accepted
    }
    EXPECT_NE(gates.find("|" + at + "|"), std::string::npos) << cheat.name << " " << verdict << ": " << entry.sentence;
    EXPECT_TRUE(std::regex_search(entry.sentence, std::regex(found[2].str())))
        << cheat.name << " " << verdict << ": " << entry.sentence;
  }

  /// No gate that looks at what a kernel does has anything against it.
  static void expect_not_accused(const KernelFile& kernel, const Entry& entry) {
    EXPECT_EQ(gate(entry, GateKind::correct).outcome, Outcome::passed) << kernel.name << ": " << entry.sentence;
    EXPECT_NE(entry.verdict, Verdict::failed) << kernel.name << " " << plain_verdict(entry) << ": " << entry.sentence;
  }

  /// What became of each, for whoever reads the log.
  static void print(const std::vector<KernelFile>& kernels, const TournamentResult& result) {
    for (const KernelFile& kernel : kernels) {
      const Entry& found = entry(result, kernel.name);
      std::printf("%s: %s: %s\n", kernel.name.c_str(), plain_verdict(found).c_str(), found.sentence.c_str());
    }
  }

 private:
  static std::vector<std::filesystem::path> files_of(const std::filesystem::path& folder,
                                                     const std::string& extension) {
    std::vector<std::filesystem::path> files;
    for (const std::filesystem::directory_entry& file : std::filesystem::directory_iterator(folder)) {
      if (file.path().extension() == extension) {
        files.push_back(file.path());
      }
    }
    std::sort(files.begin(), files.end());
    return files;
  }

  /// The rest of the line that begins so.
  static std::optional<std::string> after(const std::string& source, const std::string& beginning) {
    const std::size_t found = source.find(beginning);
    if (found == std::string::npos) {
      return std::nullopt;
    }
    const std::size_t begin = found + beginning.size();
    return source.substr(begin, source.find('\n', begin) - begin) + "\n";
  }
};

class CheatsOfAClass : public KernelFiles, public ::testing::WithParamInterface<const char*> {};

/// What cheats count on: folders of cheats/.
inline constexpr const char* classes_of_cheats[] = {"judges_itself",    "timed_outputs", "told_apart",
                                                    "known_beforehand", "outlives",      "side_effects",
                                                    "other_source",     "verdict_rules"};

inline std::string name_of_class(const ::testing::TestParamInfo<const char*>& tested) { return tested.param; }

}  // namespace thresher::arena
