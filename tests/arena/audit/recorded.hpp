#pragma once
/// The disassemblies and reports that scripts/record_dumps.sh recorded.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace thresher::arena {

inline const std::filesystem::path recorded_folder = std::filesystem::path(THRESHER_SOURCE_DIR) / "tests/arena/audit";

inline std::string recorded_text(const std::string& name) {
  std::ifstream stream(recorded_folder / name, std::ios::binary);
  EXPECT_TRUE(stream) << name;
  return {std::istreambuf_iterator<char>(stream), {}};
}

}  // namespace thresher::arena
