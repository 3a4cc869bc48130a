#pragma once
/// The project's C++ files, as the tests of its rules read them.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace thresher::house {

/// Every C++ file in the folder and below.
inline std::vector<std::filesystem::path> source_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const std::filesystem::directory_entry& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const std::string extension = entry.path().extension().string();
    if (extension == ".cpp" || extension == ".hpp" || extension == ".h" || extension == ".cuh") {
      files.push_back(entry.path());
    }
  }
  return files;
}

inline std::string read(const std::filesystem::path& path) {
  std::ifstream stream(path);
  return {std::istreambuf_iterator<char>(stream), {}};
}

}  // namespace thresher::house
