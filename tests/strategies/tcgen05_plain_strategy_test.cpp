// The strategy tcgen05_plain as it is planned: what does not fit, what it launches and how much work that is. No
// GPU is needed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <variant>

#include "strategies/dual_gemm/registry.hpp"
#include "strategies/dual_gemm/tcgen05_plain/params.hpp"
#include "strategies/dual_gemm/tcgen05_plain/program.hpp"

namespace thresher::strategies::dual_gemm::tcgen05_plain {
namespace {

const DeviceSpec& card() { return device_spec("B200"); }
const Strategy<DualGemmProblem>& plain() {
  return *find_strategy<DualGemmProblem>(strategies_of(DeviceKind::cuda), "tcgen05_plain");
}
DualGemmProblem plain_problem(std::int64_t m, std::int64_t n = 4096, std::int64_t k = 7168) {
  return {.m = m, .n = n, .k = k, .a = Format::bf16, .b = Format::bf16, .out = Format::bf16};
}
std::vector<std::string> obstacles_of(const std::string& knobs, const DualGemmProblem& problem = plain_problem(256),
                                      const DeviceSpec& device = card()) {
  return plain().obstacles(problem, Knobs::parse(knobs), device);
}
const KernelLaunch& product_of(const PlannedCall& call) { return std::get<KernelLaunch>(call.steps.front()); }

using Sentences = std::vector<std::string>;

// Gate and up of 256 tokens fill tensor memory.
TEST(Tcgen05PlainStrategy, NeedsNoMoreColumnsThanTensorMemoryHas) {
  EXPECT_EQ(obstacles_of("block_tokens=256 stages=4"), Sentences{});
  EXPECT_EQ(obstacles_of("block_tokens=128 stages=5 persistent=true"), Sentences{});
  EXPECT_EQ(obstacles_of("block_tokens=144 stages=4 persistent=true"),
            Sentences{"tensor memory: 576 columns (288 for the sums of a tile, twice) are over the limit of 512"});
}

TEST(Tcgen05PlainStrategy, NeedsNoMoreSharedMemoryThanABlockMayHave) {
  const Sentences found = obstacles_of("block_tokens=256 stages=5");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NE(found.front().find("(5 stages of 49152) are over the limit of 232448 (227 KiB)"), std::string::npos);
}

TEST(Tcgen05PlainStrategy, SplitsKWhereBothPartsHaveSomethingToDo) {
  EXPECT_EQ(obstacles_of("split_k=2"), Sentences{});
  EXPECT_EQ(obstacles_of("split_k=2 block_tokens=256 stages=4"), Sentences{});
  EXPECT_EQ(obstacles_of("split_k=2", plain_problem(256, 4096, 64)),
            Sentences{"split-K: k = 64 is 1 slot of 64, too few for 2 parts"});
  EXPECT_EQ(obstacles_of("split_k=2", plain_problem(256, 4096, 72)), Sentences{});
  EXPECT_EQ(obstacles_of("split_k=2 persistent=true"),
            Sentences{"split-K: a persistent block takes whole tiles, not one of 2 parts"});
  DeviceSpec small = card();
  small.resident_clusters = {1, 0, 0};
  EXPECT_EQ(obstacles_of("split_k=2", plain_problem(256), small),
            Sentences{"cluster: 4 blocks with a multiprocessor each have no room on 148 multiprocessors"});
}

TEST(Tcgen05PlainStrategy, EveryCandidateCanBePlannedAndFitsItsKernel) {
  for (const std::int64_t m : {1, 16, 100, 256, 4096}) {
    for (const std::int64_t k : {8, 64, 72, 7168}) {
      const std::vector<Knobs> all = plain().candidates(plain_problem(m, 4096, k), {}, card());
      EXPECT_FALSE(all.empty()) << m << " " << k;
      const auto splits = [](const Knobs& knobs) { return *knobs.find("split_k") == "2"; };
      EXPECT_EQ(std::any_of(all.begin(), all.end(), splits), k > 64) << m << " " << k;
      for (const Knobs& knobs : all) {
        const PlannedCall call = plain().plan(plain_problem(m, 4096, k), knobs, card());
        EXPECT_TRUE(pipeline::fits(shape_of(knob_table().with({}, knobs, "plain")))) << knobs.text();
        EXPECT_EQ(call.knobs, knobs);
      }
    }
  }
}

// The parts of a split stand beside one another: twice the blocks, half of the steps, and sums to exchange.
TEST(Tcgen05PlainStrategy, ASplitIsMoreBlocksWithLessToDo) {
  const auto work = [](const std::string& knobs) {
    return std::get<TensorKernel>(
        plain().work(plain_problem(256, 4096, 7232), Knobs::parse(knobs), card()).parts.front());
  };
  const TensorKernel whole = work("");
  const TensorKernel split = work("split_k=2");
  EXPECT_EQ(whole.tiles.front().steps, 113);
  EXPECT_EQ(split.tiles.front().steps, 57);
  EXPECT_EQ(split.tiles.front().count, whole.tiles.front().count);
  EXPECT_EQ(split.cluster, 2 * whole.cluster);
  EXPECT_EQ(whole.exchange_clocks, 0);
  EXPECT_GT(split.exchange_clocks, 0);
  EXPECT_EQ(split.useful_share, whole.useful_share);
  EXPECT_EQ(2 * split.tiles.front().epilogue.store_bytes, whole.tiles.front().epilogue.store_bytes);
}

TEST(Tcgen05PlainStrategy, LaunchesItsKernelOverAllTiles) {
  const DualGemmProblem problem = plain_problem(300, 1000, 528);
  const PlannedCall call = plain().plan(problem, Knobs::parse("block_tokens=128 split_k=2 stages=3"), card());
  EXPECT_EQ(product_of(call).cluster.x, 4U);
  const auto at = [](std::uintptr_t address) { return reinterpret_cast<void*>(address); };
  const std::vector<Tensor> tensors{Tensor::contiguous(at(0x10000), Format::bf16, {300, 528}),
                                    Tensor::contiguous(at(0x20000), Format::bf16, {1000, 528}),
                                    Tensor::contiguous(at(0x30000), Format::bf16, {1000, 528}),
                                    Tensor::contiguous(at(0x40000), Format::bf16, {300, 1000})};
  LaunchArguments arguments;
  EXPECT_TRUE(product_of(call).bind({tensors, nullptr, nullptr}, arguments));
  ASSERT_EQ(arguments.size(), sizeof(Params));
  Params params;
  std::memcpy(&params, arguments.data(), sizeof(Params));
  EXPECT_EQ(params.token_tiles, 3U);
  EXPECT_EQ(params.output_tiles, 4U);
  EXPECT_EQ(params.k_steps, 9U);
  EXPECT_EQ(arguments.grid.x, 3U * 4U * 4U);
}

TEST(Tcgen05PlainStrategy, ExpectsTheInstructionsOfASlot) {
  const auto expected = [](const std::string& knobs) {
    return product_of(plain().plan(plain_problem(512), Knobs::parse(knobs), card())).expected;
  };
  EXPECT_EQ(expected("").matrix_kind, "UTCHMMA");
  EXPECT_EQ(expected("").tensor.products, 8);
  EXPECT_EQ(expected("block_tokens=128").tensor.loaded_bytes, 32 * 2 * 32 * 4);
  // What a block sends of its sums, and what it keeps of both.
  EXPECT_EQ(expected("block_tokens=128 split_k=2").tensor.loaded_bytes, 32 * (32 + 2 * 32) * 4);
  EXPECT_EQ(expected("block_tokens=16 split_k=2").tensor.loaded_bytes, 32 * (8 + 2 * 8) * 4);
}

}  // namespace
}  // namespace thresher::strategies::dual_gemm::tcgen05_plain
