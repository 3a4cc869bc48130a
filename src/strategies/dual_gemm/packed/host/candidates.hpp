#pragma once
/// The configurations that `rank` chooses among (strategies/dual_gemm/packed/choose.hpp).
#include <array>

#include "strategies/dual_gemm/packed/config.hpp"

namespace thresher::strategies::dual_gemm::packed {

/// Small numbers of tokens: two thread blocks a multiprocessor hide each other's waits.
constexpr Config decode(Path path, int tokens) {
  Config config{.path = path,
                .math_warpgroups = 2,
                .block_tokens = tokens,
                .blocks_per_slot = path == Path::exact ? 4
                                   : tokens == 64      ? 2
                                                       : 1,
                .blocks_resident = 2,
                .overlap = Overlap::none};
  config.stages = path == Path::fast ? (tokens == 8    ? 10
                                        : tokens == 64 ? 3
                                                       : 8)
                  : tokens <= 16     ? 4
                  : tokens == 32     ? 3
                                     : 2;
  return config;
}

/// Registers are handed over only where the sums need it: without that, the blocks that prepare the next call's tokens
/// fit beside this one.
constexpr Config prefill_exact(int warpgroups, int tokens, int split) {
  Config config{.math_warpgroups = warpgroups, .block_tokens = tokens, .blocks_per_slot = 2, .split_k = split};
  config.stages = tokens == 256 ? 3 : warpgroups == 3 ? 4 : 5;
  config.math_registers = tokens == 256 ? 240 : 0;
  config.loader_registers = tokens == 256 ? 24 : 0;
  return config;
}

constexpr Config prefill_fast(int warpgroups, int tokens, int split) {
  Config config{.path = Path::fast,
                .math_warpgroups = warpgroups,
                .block_tokens = tokens,
                .blocks_per_slot = tokens == 256 ? 1 : 2,
                .split_k = split,
                .overlap = usual_overlap(Path::fast, warpgroups, tokens, 1)};
  config.stages = tokens == 256 ? 5 : warpgroups == 3 ? 3 : 4;
  config.math_registers = tokens == 256 ? 240 : 0;
  config.loader_registers = tokens == 256 ? 24 : 0;
  return config;
}

constexpr Config prefill(Path path, int warpgroups, int tokens, int split) {
  return path == Path::fast ? prefill_fast(warpgroups, tokens, split) : prefill_exact(warpgroups, tokens, split);
}

constexpr auto candidate_tiles(Path path) {
  return std::array{decode(path, 8),          decode(path, 16),         decode(path, 32),
                    decode(path, 64),         prefill(path, 2, 128, 1), prefill(path, 3, 128, 1),
                    prefill(path, 2, 256, 1), prefill(path, 2, 128, 2), prefill(path, 3, 128, 2),
                    prefill(path, 2, 256, 2)};
}

/// Each of them in both paths, with outputs in fp16 and bf16, and for the exact path such tokens too.
inline constexpr auto default_config_list = [] {
  std::array<Config, 4 * candidate_tiles(Path::exact).size()> configs;
  std::size_t next = 0;
  for (const Path path : {Path::exact, Path::fast}) {
    for (const Config& tile : candidate_tiles(path)) {
      for (const Number number : {Number::fp16, Number::bf16}) {
        configs[next] = tile;
        configs[next].operand = path == Path::exact ? number : Number::fp16;
        configs[next].output = number;
        ++next;
      }
    }
  }
  return configs;
}();

}  // namespace thresher::strategies::dual_gemm::packed
