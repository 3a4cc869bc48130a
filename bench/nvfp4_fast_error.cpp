// Prints, as JSON, the error of numerics fast beside that of weights in NVFP4 and in MXFP4, over several kinds of data.
// Needs no GPU.
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
  std::printf("{\"what\": \"relative error of the norm of silu(gate)*up: weights in 4 bits beside numerics fast\", ");
  std::printf("\"version\": \"%s\", \"shape\": \"%ldx%ldx%ld\", \"seeds\": %u, \"rows\": [", version(),
              static_cast<long>(m), static_cast<long>(n), static_cast<long>(k), seeds);
  const char* separator = "";
  for (const reference::FourBits weights : reference::all_four_bits) {
    for (const reference::Data data : reference::all_data) {
      for (const Format tokens : {Format::fp16, Format::nvfp4}) {
        reference::FoldErrors mean;
        for (unsigned seed = 1; seed <= seeds; ++seed) {
          const reference::FoldErrors one = reference::fold_errors(data, weights, tokens, m, n, k, seed);
          mean.packed += one.packed / seeds;
          mean.fast += one.fast / seeds;
          mean.both += one.both / seeds;
          mean.accumulation += one.accumulation / seeds;
        }
        std::printf(
            "%s\n {\"weights\": \"%s\", \"data\": \"%s\", \"tokens\": \"%s\", \"packed\": %.2e, "
            "\"fast_against_packed\": %.2e, "
            "\"fast_against_values\": %.2e, \"accumulation_in_14_bits\": %.2e}",
            separator, name(weights).data(), reference::name(data).data(), name(tokens).data(), mean.packed, mean.fast,
            mean.both, mean.accumulation);
        separator = ",";
      }
    }
  }
  std::printf("]}\n");
}
