#pragma once
/// Text files of results that must stay as they are. A file has headings, and below each heading its entries, all in
/// the order of their spelling.
///
/// `THRESHER_FROZEN=record build/default/tests/ops/test_frozen` rewrites the files. A line changes only in a commit
/// whose message says why, and a hash of machine code only where the message shows the kernel no slower.
///
/// Other tests hold more of the kind: tests/ops/dual_gemm_choices.txt and attention_choices.txt what `plan` chooses,
/// tests/strategies/*_emulated_test.cpp, tcgen05_samples_test.cpp and tests/arena/emulation that the emulator finds
/// nothing on the strategies' samples and edges.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <string>

namespace thresher::test {

using FrozenLines = std::map<std::string, std::set<std::string>>;

/// Whether THRESHER_FROZEN has this value.
inline bool frozen_mode_is(const std::string& wanted) {
  const char* const mode = std::getenv("THRESHER_FROZEN");
  return mode != nullptr && mode == wanted;
}

inline std::string frozen_path(const std::string& name) {
  return std::string(THRESHER_SOURCE_DIR) + "/tests/ops/frozen/" + name;
}

/// What the file holds. Lines that begin with "# " are for people.
inline FrozenLines read_frozen(const std::string& name) {
  FrozenLines lines;
  std::ifstream file(frozen_path(name));
  std::string heading;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("  ")) {
      lines[heading].insert(line.substr(2));
    } else if (!line.starts_with("# ")) {
      lines[heading = line];
    }
  }
  return lines;
}

inline void write_frozen(const std::string& name, const std::string& about, const FrozenLines& lines) {
  std::ofstream file(frozen_path(name));
  file << "# " << about << "\n";
  for (const auto& [heading, entries] : lines) {
    file << heading << "\n";
    for (const std::string& entry : entries) {
      file << "  " << entry << "\n";
    }
  }
  file.close();
  ASSERT_FALSE(file.fail()) << frozen_path(name);
}

/// One line for each entry of `some` that `others` lack.
inline std::string lines_missing(const FrozenLines& some, const FrozenLines& others, const std::string& mark) {
  std::string text;
  for (const auto& [heading, entries] : some) {
    const auto found = others.find(heading);
    if (found == others.end() && entries.empty()) {
      text += mark + heading + "\n";
    }
    for (const std::string& entry : entries) {
      if (found == others.end() || !found->second.contains(entry)) {
        text += mark + heading + " | " + entry + "\n";
      }
    }
  }
  return text;
}

/// Holds `lines` against the file, or rewrites it where that is asked for.
inline void expect_frozen(const std::string& name, const std::string& about, const FrozenLines& lines) {
  if (frozen_mode_is("record")) {
    write_frozen(name, about, lines);
    return;
  }
  const FrozenLines known = read_frozen(name);
  ASSERT_FALSE(known.empty()) << frozen_path(name);
  const std::string changes = lines_missing(known, lines, "- ") + lines_missing(lines, known, "+ ");
  EXPECT_TRUE(changes.empty()) << "tests/ops/frozen/" << name << " differs:\n"
                               << changes << "THRESHER_FROZEN=record rewrites it";
}

}  // namespace thresher::test
