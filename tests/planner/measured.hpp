#pragma once
/// Times that `thresher calibrate` took on an H200 (measurements/calibration_h200_2026-11-21.txt), on shapes that no
/// suite holds: what the planner's default calibration was fitted to.
#include <array>
#include <string_view>

#include "planner/predict.hpp"

namespace thresher::planner::testing {

struct Measured {
  int m, n, k;
  std::string_view config;
  double burst_us;
  double sustained_us;
};

/// fp16 activations, NVFP4 weights.
inline constexpr std::array nvfp4_weights{
    Measured{128, 5120, 5120, "two_pass", 80.2, 80.3},
    Measured{128, 5120, 5120,
             "interleaved exact 192x128x128 stages=4 warpgroups=3 cluster=2 split_k=2 producer_registers=24 "
             "consumer_registers=160 dependent_launch",
             23.2, 23.7},
    Measured{128, 5120, 5120, "interleaved exact 128x128x128 stages=3 dependent_launch", 32.5, 32.4},
    Measured{320, 6144, 4096, "two_pass", 108.8, 108.4},
    Measured{320, 6144, 4096,
             "interleaved exact 192x128x128 stages=4 warpgroups=3 cluster=2 split_k=2 producer_registers=24 "
             "consumer_registers=160 dependent_launch",
             64.2, 63.8},
    Measured{320, 6144, 4096, "interleaved exact 128x128x128 stages=3 dependent_launch", 72.7, 72.4},
    Measured{1024, 5120, 5120, "two_pass", 188.4, 196.1},
    Measured{1024, 5120, 5120,
             "interleaved exact 128x256x128 stages=3 cluster=2 split_k=2 producer_registers=24 consumer_registers=240 "
             "dependent_launch",
             147.5, 154.4},
    Measured{1024, 5120, 5120, "interleaved exact 128x128x128 stages=3 dependent_launch", 154.2, 162.2},
    Measured{2, 11008, 4096, "two_pass", 120.1, 120.3},
    Measured{2, 11008, 4096, "interleaved exact 128x8x256 stages=4 blocks=2 dependent_launch", 18.9, 18.9},
    Measured{24, 11008, 4096, "two_pass", 120.6, 120.8},
    Measured{24, 11008, 4096, "interleaved exact 128x32x256 stages=3 blocks=2 dependent_launch", 22.8, 22.6},
    Measured{48, 11008, 4096, "two_pass", 120.6, 120.7},
    Measured{48, 11008, 4096, "interleaved exact 128x64x256 stages=2 blocks=2 dependent_launch", 29.8, 29.5},
};

/// BF16 activations and weights.
inline constexpr std::array bf16_weights{
    Measured{128, 5120, 5120, "two_pass", 38.6, 39.8},
    Measured{128, 5120, 5120, "interleaved exact 160x64x64 stages=8 warpgroups=1 tma tokens_as_rows", 28.9, 29.6},
    Measured{128, 5120, 5120, "sequential exact 160x64x64 stages=8 warpgroups=1 tma tokens_as_rows", 30.6, 32.0},
    Measured{128, 5120, 5120, "pingpong exact 96x64x64 stages=8 tma tokens_as_rows persistent", 33.4, 34.2},
    Measured{320, 6144, 4096, "two_pass", 69.8, 71.4},
    Measured{320, 6144, 4096, "interleaved exact 256x64x64 stages=5 warpgroups=1 tma tokens_as_rows persistent", 47.3,
             54.6},
    Measured{320, 6144, 4096, "sequential exact 256x64x64 stages=8 warpgroups=1 tma tokens_as_rows persistent", 57.0,
             56.0},
    Measured{320, 6144, 4096, "pingpong exact 160x64x64 stages=7 tma tokens_as_rows persistent", 48.3, 52.8},
    Measured{1024, 5120, 5120, "two_pass", 150.7, 167.4},
    Measured{1024, 5120, 5120,
             "interleaved exact 160x256x64 stages=3 producer_registers=40 consumer_registers=232 tma tokens_as_rows "
             "persistent",
             129.4, 145.0},
    Measured{1024, 5120, 5120,
             "sequential exact 160x256x64 stages=4 producer_registers=40 consumer_registers=232 tma tokens_as_rows "
             "persistent",
             148.5, 161.5},
    Measured{
        1024, 5120, 5120,
        "pingpong exact 160x128x64 stages=5 producer_registers=40 consumer_registers=232 tma tokens_as_rows persistent",
        128.9, 148.6},
};

}  // namespace thresher::planner::testing
