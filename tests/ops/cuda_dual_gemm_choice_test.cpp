// Which fused kernel is chosen, and what is refused. No GPU is needed.
#include "ops/cuda_dual_gemm_choice.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "strategies/dual_gemm/fused/host/geometry.hpp"
#include "strategies/dual_gemm/fused/host/obstacles.hpp"
#include "strategies/dual_gemm/fused/program.hpp"
#include "thresher/error.hpp"

namespace thresher::ops {
namespace {

const DeviceSpec& h200() { return device_spec("H200"); }

DualGemmProblem bf16(std::int64_t m, std::int64_t n, std::int64_t k) {
  return {.m = m, .n = n, .k = k, .a = Format::bf16, .b = Format::bf16, .out = Format::bf16};
}

// The tiles that won on an H200 (docs/kernels/dual-gemm.md): one block for nearly every multiprocessor, as large as
// that allows.
TEST(CudaDualGemmChoice, OriginShapesGetTheTilesThatWon) {
  struct Won {
    DualGemmProblem problem;
    int block_outputs;
  };
  for (const Won& won : {Won{bf16(256, 4096, 7168), 64}, Won{bf16(512, 4096, 7168), 128},
                         Won{bf16(256, 3072, 4096), 48}, Won{bf16(512, 3072, 7168), 96}}) {
    const auto choice = choose_fused(won.problem, {}, h200());
    ASSERT_TRUE(choice);
    EXPECT_EQ(choice->config.strategy, strategies::dual_gemm::fused::Strategy::interleaved);
    EXPECT_EQ(strategies::dual_gemm::fused::block_tokens(choice->config), 128);
    EXPECT_EQ(choice->config.block_outputs, won.block_outputs) << planner::text(choice->planned);
    EXPECT_EQ(choice->config.split_k, 1);
    const auto built_in = strategies::dual_gemm::fused::default_configs();
    EXPECT_NE(std::find(built_in.begin(), built_in.end(), choice->config), built_in.end())
        << "the library has no machine code for " << planner::text(choice->planned);
  }
}

TEST(CudaDualGemmChoice, EveryChoiceCanBeCompiledAndCoversTheProblem) {
  for (const char* strategy : {"", "sequential", "interleaved", "pingpong"}) {
    for (const std::int64_t m : {1, 40, 64, 129, 512, 5000}) {
      for (const std::int64_t n : {1, 24, 1000, 14336}) {
        for (const Format out : {Format::bf16, Format::fp32}) {
          DualGemmProblem problem = bf16(m, n, 200);
          problem.out = out;
          const auto choice = choose_fused(problem, {.strategy = strategy, .knobs = ""}, h200());
          ASSERT_TRUE(choice) << strategy << " " << m << "x" << n;
          EXPECT_EQ(strategies::dual_gemm::fused::obstacles(choice->config), std::vector<std::string>{});
          const auto geometry =
              strategies::dual_gemm::fused::geometry(choice->config, {m, n, 200}, h200().multiprocessors);
          EXPECT_GE(geometry.token_tiles * strategies::dual_gemm::fused::block_tokens(choice->config), m);
          EXPECT_GE(geometry.output_tiles * choice->config.block_outputs, n);
        }
      }
    }
  }
}

TEST(CudaDualGemmChoice, OtherFormatsAndRowsAreLeftToOthers) {
  DualGemmProblem mixed = bf16(16, 64, 64);
  mixed.b = Format::fp16;
  EXPECT_FALSE(choose_fused(mixed, {}, h200()));
  EXPECT_FALSE(choose_fused(bf16(16, 64, 68), {}, h200()));
  EXPECT_FALSE(choose_fused(bf16(16, 64, 64), {}, device_spec("B200")));
}

std::string refusal(const FusedRequest& request) {
  try {
    static_cast<void>(choose_fused(bf16(512, 4096, 7168), request, h200()));
  } catch (const Error& error) {
    return error.what();
  }
  return "not refused";
}

TEST(CudaDualGemmChoice, KnobsAreTakenAsTheyAreOrRefusedWithTheNumberAndTheLimit) {
  const auto choice = choose_fused(bf16(512, 4096, 7168),
                                   {.strategy = "interleaved",
                                    .knobs = "interleaved 192x256x64 stages=4 cluster=2 tma "
                                             "loader_registers=24 math_registers=240 "
                                             "tokens_as_rows same_tokens"},
                                   h200());
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->config.warpgroup_tiles, 2);
  EXPECT_EQ(choice->config.block_outputs, 96);
  EXPECT_EQ(choice->config.multicast, 2);
  EXPECT_EQ(choice->config.raster, pipeline::Raster::columns_first);
  EXPECT_NE(refusal({.strategy = "", .knobs = "256x128x64 stages=5 tokens_as_rows"}).find("over the limit of 232448"),
            std::string::npos);
  EXPECT_NE(refusal({.strategy = "", .knobs = "256x128x64 stages=4"}).find("tokens_as_rows"), std::string::npos);
  EXPECT_NE(refusal({.strategy = "pingpong", .knobs = "256x128x64 tokens_as_rows"}).find("are of strategy interleaved"),
            std::string::npos);
  EXPECT_NE(refusal({.strategy = "", .knobs = "pingpong 256x64x64 stages=5 tokens_as_rows"}).find("cannot take turns"),
            std::string::npos);
}

}  // namespace
}  // namespace thresher::ops
