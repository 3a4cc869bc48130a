// Passes each file of a folder to a target, as libFuzzer would: replay_seeds TARGET FOLDER. A target with a fault ends
// the program.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#define FUZZ_TARGET(name) extern "C" int fuzz_##name(const std::uint8_t* data, std::size_t size);
#include "targets.inc"
#undef FUZZ_TARGET

namespace {

using Target = int (*)(const std::uint8_t* data, std::size_t size);

const std::map<std::string, Target> targets{
#define FUZZ_TARGET(name) {#name, fuzz_##name},
#include "targets.inc"
#undef FUZZ_TARGET
};

std::vector<std::uint8_t> bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3 || !targets.contains(arguments[1])) {
    std::fprintf(stderr, "usage: replay_seeds TARGET FOLDER\n");
    return 2;
  }
  int replayed = 0;
  for (const auto& entry : std::filesystem::directory_iterator(arguments[2])) {
    const std::vector<std::uint8_t> bytes = bytes_of(entry.path());
    targets.at(arguments[1])(bytes.data(), bytes.size());
    ++replayed;
  }
  std::printf("%d seeds of %s\n", replayed, arguments[1]);
  return replayed > 0 ? 0 : 1;
}
