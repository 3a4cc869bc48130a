#pragma once
/// Times that `thresher calibrate` took on an H200 (measurements/calibration_h200_2026-11-21.txt), on shapes that no
/// suite holds: what the planner's default calibration was fitted to.
#include <array>

namespace thresher::planner::testing {

struct Measured {
  int m, n, k;
  const char* strategy;
  const char* knobs;
  double burst_us;
  double sustained_us;
};

/// fp16 activations, which numerics `fast` folds, and NVFP4 weights.
inline constexpr std::array nvfp4_weights{
    Measured{128, 5120, 5120, "two_pass", "", 80.4, 80.4},
    Measured{128, 5120, 5120, "packed",
             "numerics=exact math_warpgroups=3 block_tokens=128 blocks_per_slot=2 stages=4 split_k=2 "
             "loader_registers=24 math_registers=160",
             23.1, 23.3},
    Measured{128, 5120, 5120, "packed",
             "numerics=fast math_warpgroups=3 block_tokens=128 blocks_per_slot=1 stages=7 split_k=2", 20.0, 20.1},
    Measured{128, 5120, 5120, "packed", "numerics=exact math_warpgroups=2 block_tokens=128 blocks_per_slot=2 stages=3",
             32.3, 32.2},
    Measured{320, 6144, 4096, "two_pass", "", 108.3, 108.4},
    Measured{320, 6144, 4096, "packed",
             "numerics=exact math_warpgroups=3 block_tokens=128 blocks_per_slot=2 stages=4 split_k=2 "
             "loader_registers=24 math_registers=160",
             64.2, 64.1},
    Measured{320, 6144, 4096, "packed",
             "numerics=fast math_warpgroups=3 block_tokens=128 blocks_per_slot=1 stages=7 split_k=2", 48.2, 48.2},
    Measured{320, 6144, 4096, "packed", "numerics=exact math_warpgroups=2 block_tokens=128 blocks_per_slot=2 stages=3",
             73.0, 72.9},
    Measured{1024, 5120, 5120, "two_pass", "", 187.2, 195.0},
    Measured{1024, 5120, 5120, "packed",
             "numerics=exact math_warpgroups=2 block_tokens=256 blocks_per_slot=2 stages=3 split_k=2 "
             "loader_registers=24 math_registers=240",
             147.4, 154.5},
    Measured{1024, 5120, 5120, "packed",
             "numerics=fast math_warpgroups=2 block_tokens=256 blocks_per_slot=1 stages=5 split_k=2 "
             "loader_registers=24 math_registers=240",
             97.9, 105.8},
    Measured{1024, 5120, 5120, "packed", "numerics=exact math_warpgroups=2 block_tokens=128 blocks_per_slot=2 stages=3",
             154.3, 162.5},
    Measured{2, 11008, 4096, "two_pass", "", 120.4, 120.5},
    Measured{2, 11008, 4096, "packed",
             "numerics=exact math_warpgroups=2 block_tokens=8 blocks_per_slot=4 stages=4 blocks_resident=2", 18.6,
             18.6},
    Measured{2, 11008, 4096, "packed",
             "numerics=fast math_warpgroups=2 block_tokens=8 blocks_per_slot=2 stages=5 blocks_resident=2", 16.2, 16.2},
    Measured{24, 11008, 4096, "two_pass", "", 121.0, 121.4},
    Measured{24, 11008, 4096, "packed",
             "numerics=exact math_warpgroups=2 block_tokens=32 blocks_per_slot=4 stages=3 blocks_resident=2", 23.0,
             23.0},
    Measured{24, 11008, 4096, "packed",
             "numerics=fast math_warpgroups=2 block_tokens=32 blocks_per_slot=2 stages=4 blocks_resident=2", 18.5,
             18.3},
    Measured{48, 11008, 4096, "two_pass", "", 120.6, 120.9},
    Measured{48, 11008, 4096, "packed",
             "numerics=exact math_warpgroups=2 block_tokens=64 blocks_per_slot=4 stages=2 blocks_resident=2", 29.3,
             29.3},
    Measured{48, 11008, 4096, "packed",
             "numerics=fast math_warpgroups=2 block_tokens=64 blocks_per_slot=2 stages=3 blocks_resident=2", 22.3,
             22.3},
};

/// BF16 activations and weights.
inline constexpr std::array bf16_weights{
    Measured{128, 5120, 5120, "two_pass", "", 38.6, 39.7},
    Measured{128, 5120, 5120, "interleaved",
             "block_outputs=80 warpgroup_tiles=1 math_warpgroups=1 block_k=64 stages=8 epilogue=tma", 28.9, 29.6},
    Measured{128, 5120, 5120, "sequential",
             "block_outputs=80 warpgroup_tiles=1 math_warpgroups=1 block_k=64 stages=8 epilogue=tma", 30.6, 32.3},
    Measured{128, 5120, 5120, "pingpong",
             "block_outputs=48 warpgroup_tiles=1 math_warpgroups=2 block_k=64 stages=8 epilogue=tma persistent", 33.3,
             33.9},
    Measured{320, 6144, 4096, "two_pass", "", 70.7, 70.5},
    Measured{320, 6144, 4096, "interleaved",
             "block_outputs=128 warpgroup_tiles=1 math_warpgroups=1 block_k=64 stages=5 epilogue=tma persistent", 47.1,
             53.5},
    Measured{320, 6144, 4096, "sequential",
             "block_outputs=128 warpgroup_tiles=1 math_warpgroups=1 block_k=64 stages=8 epilogue=tma persistent", 56.6,
             55.8},
    Measured{320, 6144, 4096, "pingpong",
             "block_outputs=80 warpgroup_tiles=1 math_warpgroups=2 block_k=64 stages=7 epilogue=tma persistent", 47.9,
             52.5},
    Measured{1024, 5120, 5120, "two_pass", "", 149.5, 165.9},
    Measured{1024, 5120, 5120, "interleaved",
             "block_outputs=80 warpgroup_tiles=2 math_warpgroups=2 block_k=64 stages=3 loader_registers=40 "
             "math_registers=232 epilogue=tma persistent",
             128.1, 143.7},
    Measured{1024, 5120, 5120, "sequential",
             "block_outputs=80 warpgroup_tiles=2 math_warpgroups=2 block_k=64 stages=4 loader_registers=40 "
             "math_registers=232 epilogue=tma persistent",
             148.8, 159.7},
    Measured{1024, 5120, 5120, "pingpong",
             "block_outputs=80 warpgroup_tiles=2 math_warpgroups=2 block_k=64 stages=5 loader_registers=40 "
             "math_registers=232 epilogue=tma persistent",
             127.4, 146.3},
};

/// Sequences of one length, 16-bit, warm.
struct MeasuredAttention {
  int batch, heads, length, head_dim;
  bool causal;
  bool split;  ///< the strategy split over two blocks, else pipelined
  double burst_us;
};

inline constexpr std::array attention{
    MeasuredAttention{1, 10, 384, 64, false, true, 4.9},     MeasuredAttention{1, 10, 384, 64, false, false, 9.0},
    MeasuredAttention{2, 16, 3072, 64, false, false, 154.0}, MeasuredAttention{2, 12, 3072, 128, false, false, 192.2},
    MeasuredAttention{1, 10, 384, 64, true, true, 4.7},      MeasuredAttention{1, 10, 384, 64, true, false, 14.2},
    MeasuredAttention{2, 16, 3072, 64, true, false, 89.0},   MeasuredAttention{2, 12, 3072, 128, true, false, 131.8},
};

}  // namespace thresher::planner::testing
