#pragma once
/// What tiles of kernels on tcgen05 may be, whatever their operands: widths in tokens, and how deep a ring is.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "pipeline/tensor_shape.hpp"
#include "thresher/knobs.hpp"

namespace thresher::strategies::dual_gemm {

inline constexpr int token_granule = 16;
inline constexpr int max_tokens = 256;
inline constexpr int max_stages = 16;

/// For `m` tokens: a tile that holds them all, and the narrower widths that a multiprocessor's loads, its products and
/// its tensor memory like best.
inline std::vector<int> token_widths(std::int64_t m) {
  const auto all =
      static_cast<int>(std::min<std::int64_t>(max_tokens, (m + token_granule - 1) / token_granule * token_granule));
  std::vector<int> widths{std::max(token_granule, all)};
  for (const int tokens : {64, 96, 128, 192}) {
    if (tokens < all) {
      widths.push_back(tokens);
    }
  }
  return widths;
}

/// As many slots as shared memory and tensor memory hold; 0 where not even one fits.
template <class Config>
constexpr int max_stages_of(Config config) {
  for (config.stages = max_stages; config.stages > 0; --config.stages) {
    if (pipeline::fits(shape_of(config))) {
      return config.stages;
    }
  }
  return 0;
}

/// With as deep a ring as fits, unless `knobs` ask for another; empty where none does.
template <class Config>
std::optional<Config> with_stages(Config config, const Knobs& knobs) {
  config.stages = knobs.find("stages") == nullptr ? max_stages_of(config) : config.stages;
  return config.stages > 0 ? std::optional(config) : std::nullopt;
}

}  // namespace thresher::strategies::dual_gemm
