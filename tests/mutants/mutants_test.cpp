// The faults of tests/mutants still fit the code that they are planted in (scripts/mutants.sh plants them).
#include <gtest/gtest.h>

#include <toml++/toml.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "mutants/pieces.hpp"

namespace {

using thresher::mutants::misfit;
namespace fs = std::filesystem;

const fs::path tree = THRESHER_SOURCE_DIR;
const fs::path folder = tree / "tests" / "mutants";

std::string read(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string stripped(const std::string& text) {
  constexpr const char* blanks = " \n";
  const auto begin = text.find_first_not_of(blanks);
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(blanks) + 1 - begin);
}

std::string text_of(const toml::table& table, const char* key) { return table[key].value_or(std::string()); }

/// Every table of [[fault]].
std::vector<toml::table> faults() {
  std::vector<toml::table> all;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".toml" && entry.path().filename() != "programs.toml") {
      const toml::table file = toml::parse_file(entry.path().string());
      for (const toml::node& fault : *file["fault"].as_array()) {
        all.push_back(*fault.as_table());
      }
    }
  }
  return all;
}

/// Where `edit` begins in `text`: behind the first `from` where it has one, else the only place that there is.
std::optional<std::size_t> place_of(const std::string& text, const toml::table& edit) {
  const std::string before = stripped(text_of(edit, "before"));
  const std::string from = text_of(edit, "from");
  const std::size_t behind = from.empty() ? 0 : text.find(from);
  const std::size_t place = behind == std::string::npos ? behind : text.find(before, behind);
  const bool is_alone = !from.empty() || text.find(before, place + 1) == std::string::npos;
  return place == std::string::npos || before.empty() || !is_alone ? std::nullopt : std::optional(place);
}

/// All that a fault changes.
std::vector<toml::table> edits_of(const toml::table& fault) {
  std::vector<toml::table> edits{fault};
  if (const toml::array* also = fault["also"].as_array()) {
    for (const toml::node& edit : *also) {
      edits.push_back(*edit.as_table());
    }
  }
  return edits;
}

std::string file_of(const toml::table& fault, const toml::table& edit) {
  return text_of(edit.contains("file") ? edit : fault, "file");
}

TEST(Mutants, StillFitTheCode) {
  for (const toml::table& fault : faults()) {
    const std::string what = text_of(fault, "what");
    for (const toml::table& edit : edits_of(fault)) {
      const std::string file = file_of(fault, edit);
      EXPECT_TRUE(place_of(read(tree / file), edit).has_value()) << what << ": " << file << " has not exactly one\n"
                                                                 << text_of(edit, "before");
      EXPECT_NE(stripped(text_of(edit, "before")), stripped(text_of(edit, "after"))) << what;
      const std::string text = read(tree / file);
      const std::string before = stripped(text_of(edit, "before"));
      const std::string reason = misfit(text, place_of(text, edit).value_or(0), before, text_of(edit, "after"));
      EXPECT_EQ(reason, "") << what << ": " << file << "\n" << before;
    }
  }
}

/// Each stands behind a switch of its own: what two of them change is the same text or lies apart.
TEST(Mutants, CanBePlantedTogether) {
  struct Place {
    std::size_t begin, end;
    std::string what;
  };
  std::map<std::string, std::vector<Place>> places;
  for (const toml::table& fault : faults()) {
    for (const toml::table& edit : edits_of(fault)) {
      const std::string file = file_of(fault, edit);
      if (const auto begin = place_of(read(tree / file), edit)) {
        const Place place{*begin, *begin + stripped(text_of(edit, "before")).size(), text_of(fault, "what")};
        for (const Place& other : places[file]) {
          const bool is_same = place.begin == other.begin && place.end == other.end;
          EXPECT_TRUE(is_same || place.end <= other.begin || other.end <= place.begin)
              << file << ": " << place.what << " and " << other.what << " overlap";
        }
        places[file].push_back(place);
      }
    }
  }
}

TEST(Mutants, AreToldApartAndSayWhoIsToFindThem) {
  const toml::table programs = toml::parse_file((folder / "programs.toml").string());
  std::set<std::string> known;
  for (const toml::table& fault : faults()) {
    const std::string what = text_of(fault, "what");
    EXPECT_TRUE(known.insert(text_of(fault, "file") + what).second) << what;
    const toml::array* const found_by = fault["found_by"].as_array();
    ASSERT_NE(found_by, nullptr) << what;
    EXPECT_FALSE(found_by->empty()) << what;
    for (const toml::node& program : *found_by) {
      EXPECT_TRUE(programs.contains(program.value_or(std::string()))) << what;
    }
  }
  EXPECT_GE(known.size(), 100U);
}

}  // namespace
