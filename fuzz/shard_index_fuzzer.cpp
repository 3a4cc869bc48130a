// The index of a checkpoint with several files.
#include "formats/shard_index.hpp"
#include "fuzzed.hpp"

using namespace thresher;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  formats::WeightMap map;
  if (fuzz::understood([&] { map = formats::parse_shard_index(fuzz::text_of(data, size), "fuzzed"); })) {
    for (const auto& [tensor, file] : map) {
      fuzz::require(!file.empty() && file.find('/') == std::string::npos && file != "." && file != ".." &&
                    printable(file) == file);
    }
  }
  return 0;
}
