// Prints, as JSON, the error of numerics fast relative to that of NVFP4, over several kinds of data. Needs no GPU.
//
// usage: bench_nvfp4_fast_error > measurements/NAME.json
#include <cstdio>

#include "reference/fold_error.hpp"
#include "thresher/version.hpp"

int main() {
  using namespace thresher;
  constexpr std::int64_t m = 64;
  constexpr std::int64_t n = 256;
  constexpr std::int64_t k = 7168;
  constexpr unsigned seeds = 3;
  std::printf("{\"what\": \"relative error of the norm of silu(gate)*up: NVFP4 beside numerics fast\", ");
  std::printf("\"version\": \"%s\", \"shape\": \"%ldx%ldx%ld\", \"seeds\": %u, \"rows\": [", version(),
              static_cast<long>(m), static_cast<long>(n), static_cast<long>(k), seeds);
  const char* separator = "";
  for (const reference::Data data : reference::all_data) {
    for (const Format tokens : {Format::fp16, Format::nvfp4}) {
      reference::FoldErrors mean;
      for (unsigned seed = 1; seed <= seeds; ++seed) {
        const reference::FoldErrors one = reference::fold_errors(data, tokens, m, n, k, seed);
        mean.nvfp4 += one.nvfp4 / seeds;
        mean.fast += one.fast / seeds;
        mean.both += one.both / seeds;
        mean.accumulation += one.accumulation / seeds;
      }
      std::printf(
          "%s\n {\"data\": \"%s\", \"tokens\": \"%s\", \"nvfp4\": %.2e, \"fast_against_nvfp4\": %.2e, "
          "\"fast_against_values\": %.2e, \"accumulation_in_14_bits\": %.2e}",
          separator, reference::name(data).data(), name(tokens).data(), mean.nvfp4, mean.fast, mean.both,
          mean.accumulation);
      separator = ",";
    }
  }
  std::printf("]}\n");
}
