#pragma once
/// Which configuration of the packed NVFP4 dual GEMM suits a problem: a pure function of shape and device.
#include <cstdint>
#include <string>
#include <vector>

#include "strategies/dual_gemm/packed/config.hpp"

namespace thresher::strategies::dual_gemm::packed {

struct Choice {
  Config config;
  double predicted_us = 0;
  std::string why;
};

/// The candidates for `m` tokens, best first. `multiprocessors` and the clock are the device's. The operand, output and
/// activation of each are the defaults; the caller sets them.
std::vector<Choice> rank(Path path, std::int64_t m, std::int64_t n, std::int64_t k, int multiprocessors);

/// Every configuration that `rank` may put first, for silu with fp16 tokens and outputs and with bf16 ones, in both
/// paths: what is compiled ahead of time.
std::vector<Config> default_configs();

}  // namespace thresher::strategies::dual_gemm::packed
