#pragma once
/// Times of early kernels on an H200 (November 2026; graph of 20 calls, rotating inputs for the products, median), the
/// ones that the planner's default calibration was fitted to.
#include <array>
#include <string_view>

#include "planner/predict.hpp"

namespace thresher::planner::testing {

struct Measured {
  int m, n, k;
  std::string_view config;
  double us;
};

/// fp16 activations, NVFP4 weights.
inline constexpr std::array nvfp4_weights{
    Measured{256, 4096, 7168,
             "exact 128x256x128 stages=3 cluster=2 split_k=2 producer_registers=40 consumer_registers=232", 41.0},
    Measured{256, 4096, 7168, "exact 128x128x128 stages=5", 42.1},
    Measured{256, 4096, 7168, "fast 128x128x128 stages=6", 25.2},
    Measured{512, 4096, 7168, "exact 128x256x128 stages=3 producer_registers=40 consumer_registers=232", 75.5},
    Measured{512, 4096, 7168, "fast 128x256x128 stages=4 producer_registers=40 consumer_registers=232", 43.2},
    Measured{256, 3072, 4096, "exact 192x128x128 stages=4 warpgroups=3 cluster=2 split_k=2", 20.9},
    Measured{256, 3072, 4096, "fast 128x128x128 stages=6", 14.9},
    Measured{512, 3072, 7168, "exact 192x128x128 stages=4 warpgroups=3", 60.0},
    Measured{512, 3072, 7168, "fast 192x128x128 stages=5 warpgroups=3", 37.2},
    Measured{1, 14336, 4096, "exact 448x8x128 stages=6 warpgroups=7 cluster=2 split_k=2", 22.3},
    Measured{1, 14336, 4096, "exact 128x8x128 stages=6 blocks=2 dependent_launch", 21.3},
    Measured{1, 14336, 4096, "fast 128x8x128 stages=6 blocks=2", 20.6},
    Measured{1, 14336, 4096, "fast 128x8x128 stages=6 blocks=2 dependent_launch", 18.7},
    Measured{16, 14336, 4096, "exact 128x16x128 stages=6 blocks=2 dependent_launch", 22.2},
    Measured{16, 14336, 4096, "fast 128x16x128 stages=6 blocks=2 dependent_launch", 19.3},
    Measured{64, 14336, 4096, "exact 256x64x128 stages=4 warpgroups=4", 31.6},
    Measured{64, 14336, 4096, "fast 128x64x128 stages=4 blocks=2", 22.0},
};

/// Two library products and an activation pass in BF16.
inline constexpr std::array library_bf16{
    Measured{256, 4096, 7168, "two_pass", 56.4},  Measured{512, 4096, 7168, "two_pass", 88.3},
    Measured{256, 3072, 4096, "two_pass", 33.7},  Measured{512, 3072, 7168, "two_pass", 68.6},
    Measured{128, 4096, 7168, "two_pass", 45.7},  Measured{1, 14336, 4096, "two_pass", 67.2},
    Measured{16, 14336, 4096, "two_pass", 65.6},  Measured{64, 14336, 4096, "two_pass", 73.1},
    Measured{2048, 14336, 4096, "two_pass", 783},
};

}  // namespace thresher::planner::testing
