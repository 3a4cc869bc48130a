#pragma once
/// Runs the `thresher` binary as a user would and keeps what came out.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "support/scratch_folder.hpp"

namespace thresher::testing {

struct Outcome {
  int status = -1;
  std::string out;
  std::string err;
};

inline std::string slurp(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// `arguments` is shell text. The binary is THRESHER_BINARY.
inline Outcome run_thresher(const std::filesystem::path& folder, const std::string& arguments) {
  const std::string command =
      "cd '" + folder.string() + "' && '" THRESHER_BINARY "' " + arguments + " >stdout.txt 2>stderr.txt";
  const int raw = std::system(command.c_str());
  return {WIFEXITED(raw) ? WEXITSTATUS(raw) : -1, slurp(folder / "stdout.txt"), slurp(folder / "stderr.txt")};
}

}  // namespace thresher::testing
