#include "planner/feasible.hpp"

#include <gtest/gtest.h>

#include "planner/obstacles.hpp"

namespace thresher::planner {
namespace {

DualGemmProblem problem_of(Format a, Format b, std::int64_t m = 256) {
  return {.m = m, .n = 4096, .k = 7168, .a = a, .b = b, .out = Format::fp16};
}

std::string judged(std::string_view config, std::string_view device, const DualGemmProblem& problem) {
  std::string all;
  for (const std::string& obstacle : feasible(problem, parse_config(config), device_spec(device)).obstacles) {
    all += obstacle + "\n";
  }
  return all;
}

const DualGemmProblem exact_weights = problem_of(Format::fp16, Format::nvfp4);

// The origin's first compile error: a tile that the instruction does not allow.
TEST(Feasible, ABlockScaledTileUnder128RowsIsRefused) {
  const DualGemmProblem nvfp4 = problem_of(Format::nvfp4, Format::nvfp4, 40);
  for (const std::string_view device : {"B200", "GB300"}) {
    EXPECT_EQ(judged("64x64x256 tokens_as_rows stages=4", device, nvfp4).substr(0, 96),
              "matrix shape: 64 rows are under the least of 128 that a block-scaled FP4 MMA takes (M ≥ 128)\n");
    EXPECT_EQ(judged("128x128x256 tokens_as_rows stages=4", device, nvfp4), "");
  }
  // 16-bit products may have 64 rows there.
  EXPECT_EQ(judged("64x64x64 tokens_as_rows stages=4", "B200", problem_of(Format::fp16, Format::fp16, 40)), "");
}

TEST(Feasible, SharedMemoryIsRefusedWithTheNumberAndTheLimit) {
  EXPECT_EQ(judged("128x256x128 stages=3 loader_registers=40 math_registers=232", "H200", exact_weights), "");
  EXPECT_EQ(judged("128x256x128 stages=4 loader_registers=40 math_registers=232", "H200", exact_weights),
            "shared memory: 300096 bytes a block (4 stages of 74752) are over the limit of 232448 (227 KiB)\n");
}

TEST(Feasible, TwoBlocksShareAMultiprocessorsMemory) {
  EXPECT_EQ(judged("128x8x128 stages=8 blocks=2", "H200", exact_weights), "");
  EXPECT_NE(judged("128x32x128 stages=8 blocks=2", "H200", exact_weights)
                .find("shared memory: 2 blocks of 140416 bytes (and 1024 reserved each) are 282880 bytes a "
                      "multiprocessor, over the limit of 233472"),
            std::string::npos);
}

// 640 threads at 96 registers with 24 for the loader and 120 for each of 4 math warpgroups hung on the GPU.
TEST(Feasible, TheRegisterPoolOfSetmaxnregIsHeld) {
  EXPECT_EQ(
      judged("256x64x128 stages=4 math_warpgroups=4 loader_registers=24 math_registers=120", "H200", exact_weights),
      "setmaxnreg: a loader of 24 and 4 math warpgroups of 120 registers are 504, over the pool of 480 (5 × 96 at "
      "launch with 640 threads); the kernel would hang\n");
  EXPECT_EQ(
      judged("256x64x128 stages=4 math_warpgroups=4 loader_registers=24 math_registers=112", "H200", exact_weights),
      "");
  EXPECT_NE(
      judged("256x64x128 stages=4 math_warpgroups=4 loader_registers=20 math_registers=100", "H200", exact_weights)
          .find("100 registers a thread are not a multiple of 8 from 24 to 240"),
      std::string::npos);
}

TEST(Feasible, WideTilesNeedRegistersHandedOver) {
  EXPECT_EQ(judged("128x128x128 stages=4", "H200", exact_weights), "");
  EXPECT_EQ(judged("128x256x128 stages=3", "H200", exact_weights),
            "registers: a math thread needs about 184, over the 168 that 384 threads × 1 blocks a multiprocessor "
            "give it\n");
}

TEST(Feasible, LaunchRegistersAreWhatTheBlockIsGiven) {
  const DeviceSpec& h200 = device_spec("H200");
  EXPECT_EQ(launch_registers(h200, 640, 1), 96);
  EXPECT_EQ(launch_registers(h200, 384, 1), 168);
  EXPECT_EQ(launch_registers(h200, 1024, 1), 64);
  EXPECT_EQ(launch_registers(h200, 128, 1), 248);
}

// Two 128×128 accumulators and the scales of a K tile of 256 fit tensor memory; two of them do not.
TEST(Feasible, TensorMemoryHoldsOneTileOf128ButNotTwo) {
  const DualGemmProblem nvfp4 = problem_of(Format::nvfp4, Format::nvfp4);
  const Feasibility one =
      feasible(nvfp4, parse_config("interleaved 256x128x256 tokens_as_rows stages=3"), device_spec("B200"));
  EXPECT_TRUE(one.feasible()) << one.obstacles.front();
  EXPECT_EQ(one.resources.tensor_memory_columns, 256 + 48);
  EXPECT_EQ(judged("pingpong 256x128x256 tokens_as_rows stages=3 persistent", "B200", nvfp4),
            "tensor memory: 560 columns are over the limit of 512\n");
}

TEST(Feasible, MatrixShapesAreLegal) {
  EXPECT_NE(judged("96x128x128", "H200", exact_weights).find("96 rows are not a multiple of 128"), std::string::npos);
  EXPECT_NE(judged("128x12x128", "H200", exact_weights).find("12 columns; wgmma takes multiples of 8 up to 256"),
            std::string::npos);
  EXPECT_NE(judged("128x320x64 stages=2", "H200", exact_weights).find("320 columns; wgmma"), std::string::npos);
  EXPECT_NE(judged("128x64x40", "H200", exact_weights).find("K tile 40 is not a multiple of 16 (16-bit products)"),
            std::string::npos);
  EXPECT_NE(judged("fast 128x64x48", "H200", exact_weights).find("K tile 48 is not a multiple of 32 (fp8 products)"),
            std::string::npos);
  EXPECT_NE(judged("128x128x32 tokens_as_rows", "B200", problem_of(Format::nvfp4, Format::nvfp4))
                .find("K tile 32 is not a multiple of 64 (nvfp4 products)"),
            std::string::npos);
}

TEST(Feasible, CopiesNeedAlignedRows) {
  DualGemmProblem odd = exact_weights;
  odd.k = 7172;
  EXPECT_NE(
      judged("128x64x128", "H200", odd).find("TMA: a row of a is 14344 bytes, not a multiple of 16: pad K = 7172"),
      std::string::npos);
  odd = exact_weights;
  odd.n = 4097;
  EXPECT_EQ(judged("128x64x128", "H200", odd), "");
  EXPECT_NE(judged("128x64x128 tma", "H200", odd).find("a row of c is 8194 bytes"), std::string::npos);
}

TEST(Feasible, ClustersAndSplitsAreHeld) {
  EXPECT_NE(judged("128x64x128 cluster=16", "H200", exact_weights)
                .find("cluster: 16 blocks; it must be a power of two up to the limit of 8"),
            std::string::npos);
  EXPECT_NE(judged("128x64x128 cluster=3", "H200", exact_weights).find("cluster: 3 blocks"), std::string::npos);
  EXPECT_NE(
      judged("128x64x128 cluster=2 split_k=4", "H200", exact_weights).find("4 parts do not divide a cluster of 2"),
      std::string::npos);
  EXPECT_NE(judged("128x64x128 stages=1", "H200", exact_weights).find("stages: 1; a pipeline needs at least 2"),
            std::string::npos);
  EXPECT_NE(
      judged("1024x8x64 math_warpgroups=8", "H200", exact_weights).find("1152 threads a block, over the limit of 1024"),
      std::string::npos);
}

TEST(Feasible, FastNumericsAreForWeightsThatMustBeConverted) {
  EXPECT_NE(judged("fast 128x64x128", "H200", problem_of(Format::fp16, Format::fp16))
                .find("numerics: fast is for NVFP4 weights"),
            std::string::npos);
  EXPECT_NE(judged("fast 128x128x128", "B200", problem_of(Format::nvfp4, Format::nvfp4)).find("numerics: fast"),
            std::string::npos);
}

TEST(Feasible, TheLibraryIsAlwaysFeasible) { EXPECT_EQ(judged("two_pass", "H200", exact_weights), ""); }

}  // namespace
}  // namespace thresher::planner
