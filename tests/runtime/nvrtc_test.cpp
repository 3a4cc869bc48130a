#include "runtime/nvrtc.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "thresher/error.hpp"

namespace thresher::runtime {
namespace {

#define SKIP_WITHOUT_NVRTC()                \
  if (!nvrtc_status().problem.empty()) {    \
    GTEST_SKIP() << nvrtc_status().problem; \
  }                                         \
  static_assert(true)

constexpr EmbeddedFile tile_header{"kernels/tile.hpp", R"(#pragma once
struct Tile { int rows; int columns; bool operator==(const Tile&) const = default; };
constexpr int elements(Tile tile) { return tile.rows * tile.columns; }
)"};

constexpr const char* scale_text = R"(#include "kernels/tile.hpp"
namespace demo {
template <Tile tile>
__global__ void scale(float* values) {
  __shared__ float staged[elements(tile)];
  staged[threadIdx.x] = values[threadIdx.x];
  __syncthreads();
  values[threadIdx.x] = 2.0f * staged[elements(tile) - 1 - threadIdx.x];
}
}
)";

Program scale_program() {
  return {.title = "scale",
          .text = scale_text,
          .headers = {tile_header},
          .kernels = {"demo::scale<Tile{4, 32}>"},
          .options = {}};
}

TEST(Nvrtc, CompilesATemplateOverAStructForHopperWithoutAGpu) {
  SKIP_WITHOUT_NVRTC();
  const Cubin cubin = compile(scale_program());
  ASSERT_EQ(cubin.kernels.size(), 1U);
  EXPECT_EQ(cubin.kernels[0].expression, "demo::scale<Tile{4, 32}>");
  EXPECT_TRUE(cubin.kernels[0].lowered_name.starts_with("_Z")) << cubin.kernels[0].lowered_name;
  ASSERT_GT(cubin.image.size(), 4U);
  EXPECT_EQ(std::memcmp(cubin.image.data(), "\177ELF", 4), 0);
  EXPECT_EQ(cubin.arch, "sm_90a");
}

TEST(Nvrtc, KeepsTheResourceReportOfEveryKernel) {
  SKIP_WITHOUT_NVRTC();
  Program program = scale_program();
  program.kernels.emplace_back("demo::scale<Tile{8, 32}>");
  const Cubin cubin = compile(program);
  ASSERT_EQ(cubin.kernels.size(), 2U);
  EXPECT_EQ(cubin.kernels[0].resources.static_shared_bytes, 4 * 32 * 4);
  EXPECT_EQ(cubin.kernels[1].resources.static_shared_bytes, 8 * 32 * 4);
  EXPECT_GT(cubin.kernels[0].resources.registers, 0);
  EXPECT_EQ(cubin.kernels[0].resources.spill_store_bytes, 0);
}

TEST(Nvrtc, KeepsItWhenTheSameProgramIsCompiledAgain) {
  SKIP_WITHOUT_NVRTC();
  const Cubin first = compile(scale_program());
  const Cubin second = compile(scale_program());
  EXPECT_EQ(first.kernels, second.kernels);
}

TEST(Nvrtc, CompilesForBlackwellToo) {
  SKIP_WITHOUT_NVRTC();
  Program program = scale_program();
  program.arch = "sm_100a";
  if (nvrtc_status().version < 12080) {
    GTEST_SKIP() << "this NVRTC is older than Blackwell";
  }
  EXPECT_EQ(compile(program).arch, "sm_100a");
}

TEST(Nvrtc, SpillsAreCounted) {
  SKIP_WITHOUT_NVRTC();
  const Program program{.title = "spill",
                        .text = R"(__global__ void __launch_bounds__(1024, 2) spill(volatile float* p) {
  float v[96];
#pragma unroll
  for (int i = 0; i < 96; ++i) v[i] = p[i];
#pragma unroll
  for (int i = 0; i < 96; ++i) p[95 - i] = v[i];
})",
                        .headers = {},
                        .kernels = {"spill"},
                        .options = {}};
  EXPECT_GT(compile(program).kernels[0].resources.spill_store_bytes, 0);
}

// A wgmma whose accumulator is read before the wait: ptxas serialises it and says so.
TEST(Nvrtc, SerialisedMatrixInstructionsAreAnError) {
  SKIP_WITHOUT_NVRTC();
  const Program program{
      .title = "serialised",
      .text = R"(__global__ void serialised(float* out, unsigned long long a, unsigned long long b, int n) {
  float d0 = 0, d1 = 0, d2 = 0, d3 = 0;
  for (int i = 0; i < n; ++i) {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    asm volatile("{.reg .pred p; setp.ne.b32 p, 1, 0; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, p, 1, 1, 0, 0;}"
                 : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3) : "l"(a), "l"(b));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    d0 += 1.0f;
  }
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  out[threadIdx.x] = d0 + d1 + d2 + d3;
})",
      .headers = {},
      .kernels = {"serialised"},
      .options = {}};
  try {
    compile(program);
    FAIL() << "the compiler's warning was not seen";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::compile);
    EXPECT_NE(std::string(error.what()).find("serialised compiled badly for sm_90a"), std::string::npos)
        << error.what();
  }
}

TEST(Nvrtc, AProgramThatDoesNotCompileShowsTheCompilersWords) {
  SKIP_WITHOUT_NVRTC();
  Program program = scale_program();
  program.text += "\nthis is no C++";
  try {
    compile(program);
    FAIL() << "it compiled";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::compile);
    EXPECT_NE(std::string(error.what()).find("scale did not compile for sm_90a"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("scale.cu(12)"), std::string::npos) << error.what();
  }
}

TEST(Nvrtc, AnUnknownArchitectureIsUnsupported) {
  SKIP_WITHOUT_NVRTC();
  Program program = scale_program();
  program.arch = "sm_17";
  try {
    compile(program);
    FAIL() << "it compiled";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_NE(std::string(error.what()).find("does not know the architecture sm_17"), std::string::npos);
  }
}

}  // namespace
}  // namespace thresher::runtime
