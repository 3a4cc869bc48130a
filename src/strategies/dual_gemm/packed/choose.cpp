#include "strategies/dual_gemm/packed/choose.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "strategies/dual_gemm/packed/host/candidates.hpp"
#include "strategies/dual_gemm/packed/host/launches.hpp"

namespace thresher::strategies::dual_gemm::packed {
namespace {

// Measured on an H200 (docs/kernels/nvfp4.md).
constexpr double clock_mhz = 1650;
constexpr double memory_bytes_per_us = 4.0e6;
constexpr double launch_us = 0.8;
constexpr double wave_us = 2.2;  ///< from its blocks' start to the first product, and from the last to the end
double merge_us(Path path) { return path == Path::fast ? 2.7 : 2.3; }

/// Operations a clock of a multiprocessor's matrix unit.
double matrix_operations(Path path) { return path == Path::fast ? 8192 : 4096; }
/// Clocks that one warpgroup takes to make a block's fragments and issue its products, when enough warps share the
/// schedulers.
double issue_clocks_per_block(Path path) { return path == Path::fast ? 121 : 90; }
/// Of the matrix unit's rate at clock_mhz, from the first slot to the last: `fast` makes as many fragments in half the
/// time, and with few tokens for each of them it waits for that.
double matrix_efficiency(const Config& config) {
  if (config.path == Path::fast) {
    return config.block_tokens == 256 ? 0.90 : config.math_warpgroups == 3 ? 0.79 : 0.77;
  }
  return config.block_tokens == 256 || config.math_warpgroups == 3 ? 1.02 : 0.97;
}

std::vector<Config> candidates(Path path, std::int64_t m) {
  for (const int tokens : {8, 16, 32, 64}) {
    if (m <= tokens) {
      return {decode(path, tokens)};
    }
  }
  std::vector<Config> all;
  for (const int split : {1, 2}) {
    all.push_back(prefill(path, 2, 128, split));
    all.push_back(prefill(path, 3, 128, split));
    if (m > 128) {
      all.push_back(prefill(path, 2, 256, split));
    }
  }
  return all;
}

std::int64_t ceiling(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

Choice predict(const Config& config, std::int64_t m, std::int64_t n, std::int64_t k, int multiprocessors) {
  const std::int64_t tiles = ceiling(m, config.block_tokens) * ceiling(n, tile_outputs(config));
  const std::int64_t blocks = tiles * config.split_k;
  const std::int64_t waves = ceiling(blocks, std::int64_t{multiprocessors} * config.blocks_resident);
  const auto k_steps = static_cast<double>(weight_k_blocks(config.path, k)) / config.split_k;
  const double matrix_clocks =
      config.math_warpgroups * 64.0 * config.block_tokens * weight_block_k(config) * 2 / matrix_operations(config.path);
  const double block_clocks = std::max(matrix_clocks / matrix_efficiency(config),
                                       issue_clocks_per_block(config.path) * config.math_warpgroups / 4);
  const double compute_us = static_cast<double>(waves) * config.blocks_resident * k_steps * block_clocks / clock_mhz;
  const double memory_us = static_cast<double>(n) * static_cast<double>(k) * 2 * 4.5 / 8 / memory_bytes_per_us;
  const double a_wave_us = wave_us + (config.split_k > 1 ? merge_us(config.path) : 0);
  const double us = launch_us + static_cast<double>(waves) * a_wave_us + std::max(compute_us, memory_us);
  return {
      config, us,
      fmt::format("{} thread blocks of {} outputs x {} tokens in {} wave{}{}, bound by {}", blocks,
                  tile_outputs(config), config.block_tokens, waves, waves == 1 ? "" : "s",
                  config.split_k > 1 ? ", K split in two" : "", compute_us > memory_us ? "the matrix unit" : "memory")};
}

}  // namespace

std::vector<Config> default_configs() { return {default_config_list.begin(), default_config_list.end()}; }

std::vector<Choice> rank(Path path, std::int64_t m, std::int64_t n, std::int64_t k, int multiprocessors) {
  std::vector<Choice> choices;
  for (const Config& config : candidates(path, m)) {
    choices.push_back(predict(config, m, n, k, multiprocessors));
  }
  std::stable_sort(choices.begin(), choices.end(),
                   [](const Choice& x, const Choice& y) { return x.predicted_us < y.predicted_us; });
  return choices;
}

}  // namespace thresher::strategies::dual_gemm::packed
